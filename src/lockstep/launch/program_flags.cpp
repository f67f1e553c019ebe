#include "lockstep/launch/program_flags.h"

#include <filesystem>

#include "lockstep/base/strings.h"

namespace lockstep::launch {

std::optional<std::string> find_flag(std::span<const std::string> arguments,
                                     std::string_view name) {
  const std::string wanted =
      "--" + base::replace_all(std::string(name), "_", "-");
  std::optional<std::string> value;
  for (size_t at = 0; at < arguments.size(); ++at) {
    const std::string& argument = arguments[at];
    if (argument == "--") break;
    const size_t equals = argument.find('=');
    if (base::replace_all(argument.substr(0, equals), "_", "-") != wanted)
      continue;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (at + 1 < arguments.size()) {
      value = arguments[++at];
    }
  }
  return value;
}

bool is_own_worker(const RunOptions& options) {
  return options.is_recipe ||
         std::filesystem::path(options.program).filename() == "lockstep-worker";
}

}  // namespace lockstep::launch

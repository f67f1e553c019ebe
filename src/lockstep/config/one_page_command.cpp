#include "lockstep/config/one_page_command.h"

#include <fmt/format.h>

#include "lockstep/config/parse.h"
#include "lockstep/config/render.h"
#include "lockstep/error.h"

namespace lockstep::config {

std::optional<std::string> parse_one_page_command(
    Options& options, const std::vector<std::string>& arguments,
    std::string_view usage) {
  const ParsedCommand parsed = parse_command(options, arguments);
  if (parsed.help) return help_text(options, usage);
  if (!parsed.positionals.empty()) {
    throw ConfigError(fmt::format(
        "'{}' belongs to no flag; usage: {}; --help lists the flags",
        parsed.positionals.front(), usage));
  }
  if (parsed.print_config) return to_yaml(options);
  return std::nullopt;
}

}  // namespace lockstep::config

#include "lockstep/engine/file_names.h"

#include <algorithm>
#include <filesystem>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::engine {

std::string file_name(const std::string& pattern, int64_t step, int64_t epoch) {
  return base::replace_all(
      base::replace_all(pattern, "{step}", std::to_string(step)), "{epoch}",
      std::to_string(epoch));
}

void require_below_folder(const std::string& name) {
  const std::filesystem::path path = name;
  const bool goes_up = std::find(path.begin(), path.end(), "..") != path.end();
  if (path.is_relative() && !goes_up) return;
  throw ConfigError("the output file '" + name +
                    "' is outside the run folder: its name must be relative "
                    "and without '..'");
}

std::string output_name(const std::string& pattern, int64_t step,
                        int64_t epoch) {
  std::string name = file_name(pattern, step, epoch);
  require_below_folder(name);
  return name;
}

std::string file_pattern(const std::string& name) {
  constexpr const char* kDigits = "+([0-9])";
  return base::replace_all(base::replace_all(name, "{step}", kDigits),
                           "{epoch}", kDigits);
}

}  // namespace lockstep::engine

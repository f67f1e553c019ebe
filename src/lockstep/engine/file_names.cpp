#include "lockstep/engine/file_names.h"

#include "lockstep/base/strings.h"

namespace lockstep::engine {

std::string file_name(const std::string& pattern, int64_t step, int64_t epoch) {
  return base::replace_all(
      base::replace_all(pattern, "{step}", std::to_string(step)), "{epoch}",
      std::to_string(epoch));
}

std::string file_pattern(const std::string& name) {
  constexpr const char* kDigits = "+([0-9])";
  return base::replace_all(base::replace_all(name, "{step}", kDigits),
                           "{epoch}", kDigits);
}

}  // namespace lockstep::engine

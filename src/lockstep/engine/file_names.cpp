#include "lockstep/engine/file_names.h"

#include "lockstep/base/strings.h"

namespace lockstep {

std::string file_name(const std::string& pattern, int64_t step, int64_t epoch) {
  return replace_all(replace_all(pattern, "{step}", std::to_string(step)),
                     "{epoch}", std::to_string(epoch));
}

std::string file_pattern(const std::string& name) {
  constexpr const char* kDigits = "+([0-9])";
  return replace_all(replace_all(name, "{step}", kDigits), "{epoch}", kDigits);
}

}  // namespace lockstep

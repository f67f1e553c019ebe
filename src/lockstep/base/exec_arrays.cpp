#include "lockstep/base/exec_arrays.h"

namespace lockstep::base {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    result.push_back(const_cast<char*>(text.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> entries_of(const Environment& environment) {
  std::vector<std::string> result;
  result.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    result.push_back(name + "=" + value);
  }
  return result;
}

}  // namespace lockstep::base

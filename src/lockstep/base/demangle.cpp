#include "lockstep/base/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace lockstep::base {
namespace {

constexpr size_t kMaxNameLength = 200;

}  // namespace

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  std::string result = status == 0 ? text.get() : name;
  if (result.size() > kMaxNameLength) {
    result.resize(kMaxNameLength - 3);
    result += "...";
  }
  return result;
}

}  // namespace lockstep::base

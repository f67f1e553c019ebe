#include "lockstep/error.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <typeinfo>

namespace lockstep {
namespace {

template <typename Kind>
bool is(const std::exception& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

}  // namespace

int exit_code(const std::exception& error) {
  if (is<ConfigError>(error)) return 2;
  if (is<IoError>(error)) return 3;
  if (is<FormatError>(error)) return 4;
  if (is<TimeoutError>(error)) return kTimeoutExitCode;
  if (is<PeerError>(error)) return kPeerExitCode;
  if (is<DeviceError>(error)) return 7;
  if (is<InternalError>(error)) return 70;
  return 1;
}

std::string kind_name(const std::exception& error) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status),
      std::free);
  std::string name = status == 0 ? demangled.get() : typeid(error).name();
  if (const auto colon = name.rfind("::"); colon != std::string::npos) {
    name.erase(0, colon + 2);
  }
  return name;
}

void internal_error(const char* file, int line, const std::string& what) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": " +
                      what + ". This is a bug in Lockstep; please report it.");
}

}  // namespace lockstep

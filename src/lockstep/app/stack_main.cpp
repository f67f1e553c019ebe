// `lockstep-stack PID`: prints the stacks of a running process. A separate
// program, so that nothing in that process or its files can bring down the
// launcher; it does not link libtorch.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/stack/native_stack.h"
#include "lockstep/stack/python_stack.h"
#include "lockstep/stack/stack_text.h"

namespace lockstep {
namespace {

std::string stacks_of(pid_t pid) {
  if (stack::is_python(pid)) {
    const auto text =
        stack::read_python_stack(pid, base::process_environment());
    if (text) return *text;
  }
  return stack::stack_text(stack::read_native_stacks(pid));
}

}  // namespace
}  // namespace lockstep

int main(int count, char** values) {
  try {
    const auto pid =
        count == 2 ? lockstep::base::parse_integer(values[1]) : std::nullopt;
    if (!pid || *pid <= 0) {
      throw lockstep::ConfigError("usage: lockstep-stack PID");
    }
    lockstep::base::write_all(STDOUT_FILENO,
                              lockstep::stacks_of(static_cast<pid_t>(*pid)));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep-stack: %s\n", error.what());
    return lockstep::exit_code(error);
  }
}

// The stack of a Python program, as py-spy shows it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "lockstep/base/environment.h"

namespace lockstep::stack {

// The process runs Python code.
bool is_python(pid_t pid);

// Output of `py-spy dump`. No value when py-spy is not on PATH or fails; waits
// for it at most 1.5 s.
std::optional<std::string> read_python_stack(
    pid_t pid, const base::Environment& environment);

}  // namespace lockstep::stack

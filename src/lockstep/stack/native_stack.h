// The stacks of a running process, read from outside: ptrace stops its
// threads for some milliseconds, libdw follows their frames.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::stack {

struct Frame {
  std::string function;     // demangled; empty: unknown
  uint64_t offset = 0;      // in the function, else in the module
  std::string module;       // name of the file
  bool is_program = false;  // the process's own program, not a library
};

struct ThreadStack {
  pid_t id = 0;
  std::string name = {};
  char state = '?';                // letter of /proc/PID/stat
  std::vector<Frame> frames = {};  // innermost first
  std::string problem = {};        // why there are no frames
};

// The main thread first. A process that is stopped stays so. Throws IoError
// with the reason when the process cannot be read.
std::vector<ThreadStack> read_native_stacks(pid_t pid);

}  // namespace lockstep::stack

// Stands in for native_stack.cpp where libdw's headers are missing.
#include "lockstep/error.h"
#include "lockstep/stack/native_stack.h"

namespace lockstep::stack {

std::vector<ThreadStack> read_native_stacks(pid_t /*pid*/) {
  throw IoError(
      "lockstep-stack was built without libdw: install libdw-dev and build "
      "again");
}

}  // namespace lockstep::stack

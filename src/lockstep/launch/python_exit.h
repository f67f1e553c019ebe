// Python programs that abort while their interpreter ends.
#pragma once

#include <string>

#include "lockstep/launch/failure_report.h"
#include "lockstep/launch/program.h"

namespace lockstep::launch {

// A program that ends without destroy_process_group() leaves Gloo's threads
// running. When one of them drops a tensor that Python knows, it waits for the
// interpreter's lock, is ended by the interpreter instead, and aborts the
// process. The cause and the remedy when a failure looks like that, else empty.
std::string python_exit_advice(const ProgramCommand& command,
                               const Failure& failure);

}  // namespace lockstep::launch

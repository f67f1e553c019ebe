// Python programs that abort while their interpreter ends.
#pragma once

#include <string>

#include "lockstep/launch/failure_report.h"
#include "lockstep/launch/program.h"

namespace lockstep::launch {

// A program that ends while its process group lives leaves Gloo's threads
// running: without destroy_process_group(), and in libtorch 2.11 also with it
// after DDP has imported torch.distributed.nn, whose default arguments keep the
// group. When one of them drops a tensor that Python knows, it waits for the
// interpreter's lock, is ended by the interpreter instead, and aborts the
// process. The cause and the remedy when a failure looks like that, else empty.
std::string python_exit_advice(const ProgramCommand& command,
                               const Failure& failure);

}  // namespace lockstep::launch

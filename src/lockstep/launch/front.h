// Running a job: two processes that watch over each other.
//
// The front is the process the user started. It forks the keeper, which owns
// the workers, and tells it each signal. Both are subreapers: whichever of the
// two vanishes, the other one finds every process of the job among its
// descendants and ends it.
#pragma once

#include <optional>

#include "lockstep/launch/plan.h"

namespace lockstep {

// Returns the exit code of the job; no process of the job is left then. Call
// it once per process: it blocks signals and becomes a subreaper. Throws
// ConfigError when an explicit port is taken, IoError when the system refuses
// a process or a pipe.
int run_job(const Plan& plan);

}  // namespace lockstep

// Running a job: three processes that watch over each other.
//
// The front is the process the user started. Its child is the guard, whose
// child is the keeper, which owns the workers. The front hands each signal to
// the keeper and ends the job itself when the keeper does not answer. All three
// are subreapers: whichever two of them vanish, the third one finds every
// process of the job among its descendants and ends it.
#pragma once

#include <optional>

#include "lockstep/launch/plan.h"

namespace lockstep::launch {

// Returns the exit code of the job; no process of the job is left then. Call
// it once per process: it blocks signals and becomes a subreaper. Throws
// ConfigError when an explicit port is taken, IoError when the system refuses
// a process or a pipe.
int run_job(const Plan& plan);

}  // namespace lockstep::launch

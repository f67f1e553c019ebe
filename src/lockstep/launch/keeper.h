// The keeper: the process that owns all workers of a job.
#pragma once

#include <csignal>
#include <optional>

#include "lockstep/launch/control.h"
#include "lockstep/launch/log_folder.h"
#include "lockstep/launch/plan.h"
#include "lockstep/launch/port.h"

namespace lockstep::launch {

// Runs the job with its restarts and reports on stderr. The calling process is
// a subreaper with SIGCHLD blocked. Returns the exit code of the job; no
// process of the job is left then.
int keep_job(const Plan& plan, const LogFolder& logs,
             std::optional<StoreSocket> port, ControlReader& control,
             const sigset_t& worker_mask);

}  // namespace lockstep::launch

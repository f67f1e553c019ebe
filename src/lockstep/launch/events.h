// torchelastic's events (--event-log-handler console): one line of JSON each.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>

#include "lockstep/launch/attempt.h"
#include "lockstep/launch/job_world.h"
#include "lockstep/launch/plan.h"

namespace lockstep::launch {

// An event START per worker of this node; `workers` are their process ids.
std::string start_events(const Plan& plan, const JobWorld& world,
                         std::span<const pid_t> workers);

// SUCCEEDED, FAILED or TERMINATED per worker, then the end of the launcher
// itself: SUCCEEDED also when workers failed, as in torchrun, FAILED when it
// was asked to stop.
std::string end_events(const Plan& plan, const JobWorld& world,
                       std::span<const pid_t> workers,
                       const AttemptResult& result);

}  // namespace lockstep::launch

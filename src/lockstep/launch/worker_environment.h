// The environment of one worker: torchrun's variables and Lockstep's own.
#pragma once

#include <filesystem>

#include "lockstep/base/environment.h"
#include "lockstep/launch/job_world.h"
#include "lockstep/launch/plan.h"

namespace lockstep::launch {

// What differs from worker to worker.
struct WorkerPlace {
  int local_rank = 0;
  JobWorld world = {};
  int status_fd = -1;
  int secret_fd = -1;        // of the job's store; -1: none
  int slots_fd = -1;         // of base::SlotFile; -1: no rank is replaced
  int terminal_columns = 0;  // where its stdout is shown; 0: no terminal
  std::filesystem::path error_file;
};

base::Environment worker_environment(const Plan& plan,
                                     const WorkerPlace& place);

// Those of its variables that depend on the world, of which a worker may see
// several.
base::Environment world_variables(const Plan& plan, const JobWorld& world,
                                  int local_rank);

// The start of a teed line: "[default1]:", or as in
// TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE.
std::string line_prefix(const Plan& plan, int local_rank, int rank);

}  // namespace lockstep::launch

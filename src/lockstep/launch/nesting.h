// A launcher that was itself started once per rank of another one.
#pragma once

#include "lockstep/base/environment.h"

namespace lockstep::launch {

// Throws ConfigError when torchrun, `lockstep run`, srun or mpirun has started
// several of this process: each would run a separate job, in the same folders
// and on the same GPUs. For several nodes srun or mpirun start one launcher on
// each.
void refuse_nested_launch(const base::Environment& environment, int num_nodes);

}  // namespace lockstep::launch

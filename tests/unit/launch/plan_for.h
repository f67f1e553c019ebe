// The plan of `lockstep run` on a machine with these GPUs and CPU cores.
#pragma once

#include <string>
#include <vector>

#include "lockstep/launch/plan.h"

namespace lockstep::testing {

inline launch::Plan plan_for(const std::vector<std::string>& arguments,
                             base::Environment environment = {}, int gpus = 0,
                             int cores = 8) {
  environment.emplace("PATH", "/usr/bin:/bin");
  return launch::make_plan(launch::parse_run_options(arguments, environment),
                           environment,
                           {.count_gpus = [gpus] { return gpus; },
                            .count_cores = [cores] { return cores; }});
}

}  // namespace lockstep::testing

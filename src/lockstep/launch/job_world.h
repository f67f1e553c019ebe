// Which part of a job this node runs.
#pragma once

#include <string>

#include "lockstep/launch/plan.h"

namespace lockstep::launch {

struct JobWorld {
  int attempt = 0;       // counted from 0
  int num_restarts = 0;  // that count against --max-restarts
  int generation = 0;    // above 0: processes that live go on with their state
  int node = 0;
  int num_nodes = 1;
  int first_rank = 0;  // of this node
  int num_ranks = 1;   // of the job
  int first_role_rank = 0;
  int role_size = 1;
  std::string master_addr = {};
  int master_port = 0;
  std::string store_secret = {};  // of the host; empty: workers have none
  std::string job = {};           // unique name of the job
};

// The job is this node's alone.
inline JobWorld world_of_one_node(const Plan& plan, int attempt,
                                  int master_port) {
  return {.attempt = attempt,
          .num_restarts = attempt,
          .num_ranks = plan.num_processes,
          .role_size = plan.num_processes,
          .master_addr = plan.master_addr,
          .master_port = master_port,
          .job = plan.job};
}

}  // namespace lockstep::launch

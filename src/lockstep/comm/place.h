// Who a process is: its rank, and where the others meet.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/base/environment.h"

namespace lockstep {

struct Place {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  // The launcher hosts the store (torchrun's static back end) instead of rank
  // 0.
  bool launcher_hosts_store = false;
  // Attempts of one job must not read each other's keys from a store that lives
  // on.
  int64_t attempt = 0;
};

// From torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
// MASTER_ADDR, MASTER_PORT); a world of one when RANK and WORLD_SIZE are both
// unset. Throws ConfigError that names what is missing or contradictory.
Place place_from_environment(const Environment& environment);

}  // namespace lockstep

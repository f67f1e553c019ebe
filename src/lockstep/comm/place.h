// Rank and size of a process, and the address of the rendezvous.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"

namespace lockstep::comm {

struct Place {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  // The launcher hosts the store instead of rank 0.
  bool launcher_hosts_store = false;
  // What this rank proves to the store: the secret of `lockstep run`, or the
  // name of a job of srun or mpirun.
  std::optional<std::string> store_secret = std::nullopt;
  // Ports where rank 0 of such a job may host the store. Empty: master_port.
  std::vector<int> store_ports = {};
  // Attempts of one job must not read each other's keys from a store that lives
  // on.
  int64_t attempt = 0;
};

// From torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
// MASTER_ADDR, MASTER_PORT), else from those of srun, mpirun or mpiexec; a
// world of one when there are neither. Throws ConfigError that names what is
// missing or contradictory, and for tasks on several machines.
Place place_from_environment(const base::Environment& environment);

// "the launcher" or "rank 0".
std::string store_host(const Place& place);

}  // namespace lockstep::comm

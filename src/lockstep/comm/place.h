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
  // MASTER_ADDR is a name that exists only once rank 0 runs (Kubernetes).
  bool name_comes_later = false;
  // What this rank proves to the store: the secret of `lockstep run`, or the
  // name of a job of srun or mpirun.
  std::optional<std::string> store_secret = std::nullopt;
  // Ports where rank 0 of such a job may host the store. Empty: master_port.
  std::vector<int> store_ports = {};
  // Attempts of one job must not read each other's keys from a store that lives
  // on.
  int64_t attempt = 0;
  // How often ranks of this attempt were replaced (base/recovery_page.h).
  int generation = 0;
  // How often all ranks of this generation have connected anew.
  int round = 0;

  bool is_one_machine() const { return local_world_size == world_size; }
};

// From torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
// MASTER_ADDR, MASTER_PORT), which win; else from those of srun, mpirun or
// mpiexec, or of an indexed Job of Kubernetes; a world of one when there are
// none. A pod runs one process unless LOCAL_RANK is set. Throws ConfigError
// that names what is missing or contradictory.
Place place_from_environment(const base::Environment& environment);

// "the launcher" or "rank 0".
std::string store_host(const Place& place);

}  // namespace lockstep::comm

// Which ranks of a job run on the same machine.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/environment.h"

namespace lockstep::comm {

// The kernel that runs: another one on every machine and after every start.
// Throws IoError.
std::string boot_id();

// The machine of this process: the kernel, and its network, as hosts made of
// network namespaces share a kernel. NCCL_HOSTID, which names the machine for
// NCCL, comes first. Throws IoError.
std::string machine_name(const base::Environment& environment);

// Machines are numbered in the order of their lowest ranks.
class Machines {
 public:
  // One name per rank.
  explicit Machines(const std::vector<std::string>& names);

  int count() const { return static_cast<int>(ranks_.size()); }
  int machine_of(int rank) const { return machine_of_[rank]; }
  // Ascending; the first one is the leader.
  const std::vector<int>& ranks_of(int machine) const {
    return ranks_[machine];
  }
  // Its place among the ranks of its machine.
  int local_rank(int rank) const;
  bool is_leader(int rank) const { return local_rank(rank) == 0; }

 private:
  std::vector<int> machine_of_;
  std::vector<std::vector<int>> ranks_;
};

}  // namespace lockstep::comm

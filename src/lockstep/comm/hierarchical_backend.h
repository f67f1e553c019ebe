// The c10d backend of CPU tensors for several machines with several ranks each:
// shared memory within a machine, Gloo between one rank of each.
//
// all_reduce, broadcast and barrier go this way; everything else over Gloo
// between all ranks. Sums are added within each machine first (in Gloo's order
// of its ranks), then over the machines (in Gloo's order of machines): all
// ranks get the same bits, but not those of Gloo between all ranks.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>

#include "lockstep/base/status.h"
#include "lockstep/comm/machines.h"
#include "lockstep/comm/shared_arena.h"

namespace c10d {
class Backend;
}

namespace lockstep::comm {

struct HierarchicalBackendConfig {
  int rank = 0;
  Machines machines;
  // Memory of this machine's ranks; null for a rank that is alone on it.
  std::shared_ptr<SharedArena> arena = nullptr;
  // Gloo between the leaders; null on other ranks.
  c10::intrusive_ptr<c10d::Backend> leaders = {};
  c10::intrusive_ptr<c10d::Backend> gloo = {};  // Between all ranks.
  std::chrono::milliseconds timeout{0};
  // Collectives are noted there.
  base::StatusWriter status = {};
};

// Thread-safe as Gloo's: calls run in the order in which they are made.
c10::intrusive_ptr<c10d::Backend> make_hierarchical_backend(
    const HierarchicalBackendConfig& config);

}  // namespace lockstep::comm

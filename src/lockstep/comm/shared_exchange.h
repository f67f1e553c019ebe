// Whether the ranks of a job exchange tensors through shared memory: all of
// them, or those of each machine.
//
// All ranks decide alike: each writes into the store what it offers, and, after
// the memory was passed around, whether that worked.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/comm/machines.h"
#include "lockstep/comm/place.h"
#include "lockstep/comm/shared_arena.h"

namespace c10d {
class Store;
}

namespace lockstep::comm {

enum class ExchangeChoice { kAutomatic, kGloo, kShared, kHierarchical };

// LOCKSTEP_EXCHANGE: gloo, shared, hierarchical, or unset. Throws ConfigError.
ExchangeChoice exchange_choice(const base::Environment& environment);

struct ExchangeOutcome {
  // Shared by all ranks, or by this machine's when there are several. Null:
  // Gloo.
  std::shared_ptr<SharedArena> arena;
  // With kHierarchical on several machines: where each rank runs.
  std::optional<Machines> machines;
  // Why it is Gloo although the ranks share a machine: for a warning of rank 0.
  std::string problem;
};

struct ExchangeConfig {
  ExchangeChoice choice = ExchangeChoice::kAutomatic;
  std::string machine = {};  // machine_name(), for kHierarchical.
  std::chrono::milliseconds timeout{0};
  JobRanks job = {};
};

// Every rank must call it once. Throws ConfigError when this rank insists on
// shared memory and it cannot be had, and on all ranks when some want
// kHierarchical and others do not.
ExchangeOutcome connect_shared_memory(
    const c10::intrusive_ptr<c10d::Store>& store, const Place& place,
    const ExchangeConfig& config);

}  // namespace lockstep::comm

// Whether the ranks of a job exchange tensors through shared memory.
//
// All ranks decide alike: each writes into the store what it offers, and, after
// the memory was passed around, whether that worked.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/comm/place.h"
#include "lockstep/comm/shared_arena.h"

namespace c10d {
class Store;
}

namespace lockstep::comm {

enum class ExchangeChoice { kAutomatic, kGloo, kShared };

// LOCKSTEP_EXCHANGE: gloo, shared, or unset. Throws ConfigError.
ExchangeChoice exchange_choice(const base::Environment& environment);

struct ExchangeOutcome {
  std::shared_ptr<SharedArena> arena;  // Null: Gloo.
  // Why it is Gloo although the ranks share a machine: for a warning of rank 0.
  std::string problem;
};

// Every rank must call it once. Throws ConfigError when this rank insists on
// shared memory and it cannot be had.
ExchangeOutcome connect_shared_memory(c10d::Store& store, const Place& place,
                                      ExchangeChoice choice,
                                      std::chrono::milliseconds timeout);

}  // namespace lockstep::comm

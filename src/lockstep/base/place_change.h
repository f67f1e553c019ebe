// A rank that goes on in another world: which of its variables have changed
// since its process started (lockstep run --recover memory on several nodes).
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/base/slot_file.h"

namespace lockstep::base {

// Written by the launcher, before it announces the generation.
struct PlaceChange {
  Environment variables = {};     // RANK, WORLD_SIZE and their like.
  std::string store_secret = {};  // For the job's store; empty: none.
};

void write_place_change(SlotFile& slots, int generation,
                        const PlaceChange& change);
// No value when the place is that of the process's start.
std::optional<PlaceChange> read_place_change(const SlotFile& slots,
                                             int generation);
// A later generation has been written already.
bool has_later_place_change(const SlotFile& slots, int generation);

// Whether a launcher on several nodes, whose number may change, has started
// this process.
bool spans_nodes(const Environment& environment);

// `started` with the newest change, if there is one.
Environment current_environment(Environment started);

}  // namespace lockstep::base

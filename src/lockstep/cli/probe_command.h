// Measurements for `lockstep doctor` and `lockstep verify-resume`: what needs
// libtorch.
//
// Results are lines "doctor result {...}" and, so that a measurement that hangs
// shows where, "doctor stage NAME" and "doctor copy GPU 0 to GPU 1". Nothing is
// written to disk.
#pragma once

#include <string>
#include <vector>

#include "lockstep/cli/commands.h"

namespace lockstep::cli {

// All-reduce between the ranks of this job: bandwidth, and the time of a small
// one. `device`: cpu or cuda. Throws PeerError when a sum is wrong.
int probe_exchange(const std::string& device, const CommandContext& context);

// Copies between all pairs of visible GPUs, with a check of the data.
int probe_copies(const CommandContext& context);

// Trains the recipe for some blocks of ten steps: data, batch, learning rate,
// memory, speed. `arguments`: its flags.
int probe_recipe(Recipe& recipe, const std::vector<std::string>& arguments,
                 const CommandContext& context);

// Compares two checkpoints, less their settings, bit by bit:
// {"equal": 12, "different": ["model.weight"]}.
int probe_checkpoints(const std::string& expected, const std::string& actual,
                      const CommandContext& context);

}  // namespace lockstep::cli

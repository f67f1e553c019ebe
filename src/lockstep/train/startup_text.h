// What a training says of itself before its first step.
#pragma once

#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/comm/world.h"
#include "lockstep/train/recipe.h"

namespace lockstep {

// The guides' block and a line per rank with host and device. A collective; the
// same text on every rank.
std::string setup_text(const World& world);

// That the CPU is used for lack of a GPU; empty when nobody needs to be told:
// with a GPU, with --device, with an empty CUDA_VISIBLE_DEVICES, or for a
// recipe that suits CPUs.
std::string cpu_text(c10::Device device, const TrainConfig& config,
                     const RecipeFacts& facts, const Environment& environment);

// Memory in numbers, then what to try: for errors. `what` is what was going on:
// "step 12", "making the model".
// `error` is what the allocator said.
std::string out_of_memory_text(const World& world, const std::string& what,
                               std::string_view error, int64_t batch_size,
                               const std::vector<std::string>& remedies);

}  // namespace lockstep

// What a training says of itself before its first step.
#pragma once

#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/world.h"

namespace lockstep::cli {

// The guides' block and a line per rank with host and device. A collective; the
// same text on every rank.
std::string setup_text(const World& world);

// That a recipe trains on the CPU for lack of a GPU. `choice` is the value of
// --device. Empty where the CPU is expected: chosen by --device or by an empty
// CUDA_VISIBLE_DEVICES, or the recipe is tiny.
std::string cpu_text(c10::Device device, const std::string& choice,
                     const std::string& recipe,
                     const base::Environment& environment);

// Memory in numbers, then what to try: for errors. `what` is what was going on:
// "step 12", "making the model".
// `error` is what the allocator said.
std::string out_of_memory_text(const World& world, const std::string& what,
                               std::string_view error, int64_t batch_size,
                               const std::vector<std::string>& remedies);

}  // namespace lockstep::cli

// Messages that a training logs before its first step.
#pragma once

#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/world.h"

namespace lockstep::cli {

// The setup block of the guides, and a line per rank with host and device. A
// collective; equal on every rank.
std::string setup_text(const World& world);

// Warning that a recipe trains on the CPU because there is no usable GPU.
// `choice` is the value of --device. Empty if the CPU is expected: chosen by
// --device or by an empty CUDA_VISIBLE_DEVICES, or for the recipe tiny.
std::string cpu_text(c10::Device device, const std::string& choice,
                     const std::string& recipe,
                     const base::Environment& environment);

// Error text: memory use, then remedies. `what` is the activity: "step 12",
// "making the model". `error` is the allocator's message.
std::string out_of_memory_text(const World& world, const std::string& what,
                               std::string_view error, int64_t batch_size,
                               const std::vector<std::string>& remedies);

}  // namespace lockstep::cli

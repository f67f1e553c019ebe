// --init_from: starts a new training with the weights of a file.
#pragma once

#include "lockstep/checkpoint_layout.h"
#include "lockstep/engine/learner.h"
#include "lockstep/track/console.h"
#include "lockstep/train_config.h"
#include "lockstep/world.h"

namespace lockstep::run {

// Copies the weights of config.init_from into the model; moving averages start
// from them. A file of Lightning may hold the model below an attribute
// (inner_weights.h). Every rank reads the file; rank 0 logs how many tensors
// were loaded and warns with the names of those that were not. Throws
// ConfigError if nothing fits, or if shapes differ without
// config.ignore_mismatched_sizes.
void init_weights(const TrainConfig& config, const CheckpointLayout& layout,
                  engine::Learner& learner, const World& world,
                  track::Console& console);

}  // namespace lockstep::run

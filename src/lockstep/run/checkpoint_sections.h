// Reads and writes checkpoints in the layout of a recipe's original project.
#pragma once

#include "lockstep/checkpoint.h"
#include "lockstep/checkpoint_layout.h"
#include "lockstep/engine/learner.h"
#include "lockstep/engine/train_state.h"
#include "lockstep/options.h"

namespace lockstep::run {

// Adds the model's parts to the checkpoint. Throws InternalError for a
// parameter that belongs to no part.
void put_model(Tree& checkpoint, const torch::nn::Module& model,
               const CheckpointLayout& layout);

// The same for moving averages. The checkpoint also refers to their tensors
// elsewhere; shared storage is written once.
void put_averages(Tree& checkpoint, engine::Learner& learner,
                  const CheckpointLayout& layout);

// Epoch, step, losses, best value.
void put_progress(Tree& checkpoint, const engine::TrainState& state,
                  const CheckpointLayout& layout);

// All settings by name.
Tree settings_tree(const Options& options);

// The weights that a file holds, by the model's names: under the recipe's keys,
// under those that programs commonly use, or the file itself is the dict. Names
// may begin with "module.". Throws FormatError with the file's keys when there
// are none; `path` is for the message.
Tree find_weights(const TreeView& file, const CheckpointLayout& layout,
                  const std::string& path);

// Moving average `index`, by the names of the model's parameters. Throws
// ConfigError when the file has no such average.
Tree find_average(const TreeView& file, const CheckpointLayout& layout,
                  int64_t index, const std::vector<std::string>& names);

}  // namespace lockstep::run

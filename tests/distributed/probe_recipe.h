// A recipe that tells what it was asked for and misbehaves on demand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/recipe.h"

namespace lockstep {

struct ProbeConfig {
  int64_t train_samples = 24;
  int64_t val_samples = 7;
  int64_t hidden = 6;  // Units of the network.
  double dropout = 0;
  bool batch_norm = false;
  double noise = 0.1;
  // Sample i weighs 1 + i % 5 and the normaliser is the sum of the weights.
  bool own_normaliser = false;
  bool loss_terms = false;
  // A folder for rank_N.txt: a line per batch with the samples and a checksum
  // of the weights before it; and for the files pid_N and paused_N.
  std::string record = {};
  // In call `pause_call` (from 0) of the phase train, validate or sample, or
  // when all is done ("end"): makes the file paused_N and waits for
  // `pause_signals` signals or the file go; once in a folder. In call
  // `pause_call` of the optimizer's kernel ("update") the rank `late_rank`
  // waits before it, and others make the file updated_N after it.
  std::string pause_in = {};
  int64_t pause_call = 0;
  int64_t pause_signals = 1;
  // This rank waits in its training data while the file hang is in the folder
  // `record`, and is slow in them while the file slow is.
  int64_t late_rank = -1;
  // Training samples that make the loss NaN, or memory run out.
  std::optional<int64_t> nan_sample = {};
  // The rank with this training sample flips a bit of its weights.
  std::optional<int64_t> flip_sample = {};
  // In every training batch one rank, drawn by this seed, flips a bit of its
  // weights and adds the line "BATCH RANK" to the file flips.txt in `record`.
  std::optional<int64_t> flip_seed = {};
  std::optional<int64_t> memory_sample = {};
  // Memory runs out in these steps, once in each, on the rank `memory_rank` or
  // on all: in the last forward or backward pass of the step.
  std::vector<double> memory_steps = {};
  int64_t memory_rank = -1;
  bool memory_in_backward = false;
  // Memory of the machine, not of a GPU; by a real allocation.
  bool host_memory = false;
  // The loss of the n-th validation; the last one stays.
  std::vector<double> validation_losses = {};
  // The loss depends on how often it was computed, which no checkpoint keeps.
  bool forgetful = false;
  // Whose checkpoints to write: original_layouts.h.
  std::string layout = {};
};

class ProbeRecipe final : public Recipe {
 public:
  std::string name() const override { return "probe"; }
  std::string summary() const override { return "for tests"; }
  void describe(Settings& settings) override;
  std::unique_ptr<Task> build(const Settings& settings,
                              Purpose purpose) override;

 private:
  ProbeConfig config_;
};

}  // namespace lockstep

// A batch, and the position in the data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace lockstep {

// Position in the data: enough to continue with the next batch.
struct DataPosition {
  int64_t epoch = 0;
  // Samples of this epoch already used: by all ranks together (StepLoader), or
  // by this rank (Loader).
  int64_t sample = 0;

  bool operator==(const DataPosition&) const = default;
};

// One optimizer step of a StepLoader, equal on every rank.
struct Step {
  DataPosition begin = {};
  int64_t num_samples = 0;  // Over all ranks.
  int64_t num_micro_batches = 0;
  DataPosition next = {};  // Position of the step after this one.

  bool ends_epoch() const { return next.epoch != begin.epoch; }
};

struct Batch {
  std::vector<at::Tensor> tensors = {};  // On the loader's device.
  // The samples' seeds as Dataset::get() got them, for SampleRandom: int64, on
  // the device too.
  at::Tensor seeds = {};
  std::vector<int64_t> indices = {};  // The samples, in order.
  // Where to resume after this batch. Within a step of several micro-batches
  // this is the step's beginning: its gradients are not in a checkpoint.
  DataPosition next = {};
  // A batch for a rank that has no samples left, to keep ranks in step. Tasks
  // need not look at it: the trainer leaves out what they compute. A training
  // loop of your own computes it and multiplies its loss by 0.
  bool is_filler = false;
  // The optimizer step and this batch's number in it, from 0. Set by StepLoader
  // only.
  Step step = {};
  int64_t micro_batch = 0;

  const at::Tensor& operator[](size_t part) const { return tensors.at(part); }
  int64_t size() const { return static_cast<int64_t>(indices.size()); }
  // The last micro-batch of its step: exchange gradients, then update.
  bool ends_step() const { return micro_batch + 1 == step.num_micro_batches; }
};

}  // namespace lockstep

// A copy of what all ranks hold alike, to go back to after an update of
// garbage.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lockstep/engine/learner.h"

namespace lockstep::engine {

// Weights, optimizer state, averages and loss scale. On a GPU the update of a
// step is queued behind its exchange, or is part of the same CUDA graph: when
// the exchange is aborted, the update runs all the same, on what the aborted
// kernels have left.
//
// Takes as much memory on the device as what it copies. Never waits for it.
class ReplicaCopy {
 public:
  explicit ReplicaCopy(Learner& learner) : learner_(learner) {}

  // After a step that is known to be complete, before the next one.
  void note();
  // As they were at the last note().
  void restore();

 private:
  std::vector<at::Tensor> tensors() const;

  Learner& learner_;
  // The values of tensors() at the last note().
  std::vector<at::Tensor> copies_;
  OptimizerState state_;              // Its tensors are the optimizer's own.
  std::vector<int64_t> num_updates_;  // One per average.
};

}  // namespace lockstep::engine

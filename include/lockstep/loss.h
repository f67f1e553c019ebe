// The loss of a batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace lockstep {

// One of several terms of a loss, each with its own normaliser: for example the
// mean over labelled pixels plus the mean over all others.
struct LossTerm {
  std::string name = {};  // As it is logged, without its weight.
  double weight = 1;
  at::Tensor sum = {};  // Over the batch; a scalar. One has a gradient.
  // Divisor of the sum, a scalar on the device, summed over the ranks of a
  // micro-batch. If it is 0, the term is 0.
  at::Tensor normaliser = {};
};

// Sums, not means: sums of micro-batches and ranks add up to that of the step.
struct Loss {
  at::Tensor sum = {};  // Over the batch's samples; a scalar with a gradient.
  // Divisor of the sum over the whole step, a scalar on the device, such as the
  // number of scored tokens. Unset: the number of samples.
  at::Tensor normaliser = {};
  // Other sums to log, divided likewise: {"pose_loss", ...}.
  std::vector<std::pair<std::string, at::Tensor>> parts = {};
  // Instead of all of the above: the loss is the sum of weight * sum /
  // normaliser. A step of several micro-batches takes their mean, weighted by
  // their samples.
  std::vector<LossTerm> terms = {};
};

}  // namespace lockstep

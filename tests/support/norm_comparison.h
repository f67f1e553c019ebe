// SyncBatchNorm of ranks against one BatchNorm of their joined batch, on the
// device of the world.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "lockstep/world.h"

namespace lockstep::testing {

struct NormComparison {
  at::ScalarType dtype = at::kFloat;
  double tolerance = 1e-5;
  at::MemoryFormat format = at::MemoryFormat::Contiguous;
  std::vector<int64_t> batches = {};  // Per rank.
};

// Outputs, gradients and running statistics of two steps.
void compare_norms(const World& world, const NormComparison& with);

// Relative to the size of what is expected.
void expect_near(const at::Tensor& ours, const at::Tensor& expected,
                 double tolerance);

// The sum over all ranks.
at::Tensor joined(const World& world, const at::Tensor& own);

}  // namespace lockstep::testing

// Linear layers in mixed precision.
#pragma once

#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

// at::linear(x, weight, bias); the bias may be undefined. Where the scope has
// WorkingWeights, the product takes those and the weight's gradient is computed
// in float32: no tensor is cast, and the gradient is not rounded to half
// precision.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight,
                  const at::Tensor& bias = {});

}  // namespace lockstep::kernels

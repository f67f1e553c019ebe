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

// A product whose bias, which is added, may still need its gradient: the sums
// of the columns of the gradient of `out`.
struct LinearResult {
  at::Tensor out = {};
  at::Tensor bias = {};  // Undefined if it needs nothing.
};

// As linear(). With WorkingWeights the bias gets no gradient here: the kernel
// that takes the result reads that gradient anyway.
LinearResult linear_leaving_bias(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias);

// For those without such a kernel. Its dimensions after the bias' may be split.
at::Tensor with_bias_gradient(const LinearResult& result);

}  // namespace lockstep::kernels

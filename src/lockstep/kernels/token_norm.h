// LayerNorm of tokens whose type is wider than that of its weights.
#pragma once

#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

struct TokenNorm {
  at::Tensor weight = {};  // [D]
  at::Tensor bias = {};    // [D]
  double eps = 1e-5;
};

// LayerNorm over the last dimension of x, [..., D]. When x's type is wider than
// that of the weights, computes in x's type and returns theirs; on a GPU in one
// kernel when no gradient is needed.
at::Tensor norm_tokens(const at::Tensor& x, const TokenNorm& norm);

// True when autograd must record an operation on these.
bool any_takes_gradient(at::TensorList tensors);

}  // namespace lockstep::kernels

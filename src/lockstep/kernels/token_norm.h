// LayerNorm of tokens that have more bits than its weights.
#pragma once

#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

struct TokenNorm {
  at::Tensor weight = {};  // [D]
  at::Tensor bias = {};    // [D]
  double eps = 1e-5;
};

// LayerNorm over the last dimension of x, [..., D]. Computed in x's type when
// it has more bits than the weights, answered in theirs: on a GPU in one pass
// when no gradient is asked for.
at::Tensor norm_tokens(const at::Tensor& x, const TokenNorm& norm);

// True when autograd would have to know an operation on these.
bool any_takes_gradient(at::TensorList tensors);

}  // namespace lockstep::kernels

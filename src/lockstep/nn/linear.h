// Linear layers, applied in one pass.
#pragma once

#include <torch/nn/modules/linear.h>

#include "lockstep/tensor/tensor.h"

namespace lockstep {

// What layer->forward(x) gives. That of libtorch's C++ adds the bias in a
// second pass unless x has two dimensions; here the product adds it, as in
// Python.
at::Tensor apply_linear(const torch::nn::Linear& layer, const at::Tensor& x);

}  // namespace lockstep

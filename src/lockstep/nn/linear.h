// Linear layers with a fused bias.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "lockstep/kernels/adaln_residual.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

enum class Bias { kNo, kYes };

// torch::nn::Linear, with the same names and initial weights. forward() of
// libtorch's C++ layer adds the bias in a second kernel unless x has two
// dimensions; here the matrix product adds it, as in Python.
class LinearImpl : public torch::nn::Module {
 public:
  LinearImpl(int64_t in, int64_t out, Bias has_bias = Bias::kYes);

  at::Tensor forward(const at::Tensor& x);

  // On a GPU without the bias, which is returned with it: the kernel that takes
  // the result adds it, and sums its gradient on the way.
  kernels::ResidualBranch forward_to_residual(const at::Tensor& x);

  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out], or undefined and not registered.
};
TORCH_MODULE(Linear);

}  // namespace lockstep::nn

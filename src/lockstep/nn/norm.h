// Normalisation over the last dimension.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "lockstep/kernels/adaln_residual.h"
#include "lockstep/kernels/token_norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

// torch::nn::LayerNorm. x may have a wider type than the weights: see
// norm_tokens().
class LayerNormImpl : public torch::nn::Module {
 public:
  explicit LayerNormImpl(int64_t size, double eps = 1e-5);

  at::Tensor forward(const at::Tensor& x);

  const kernels::TokenNorm& norm() const { return norm_; }

 private:
  kernels::TokenNorm norm_;
};
TORCH_MODULE(LayerNorm);

struct RmsNormConfig {
  int64_t size = 384;
  double eps = 1e-6;
  bool has_scalar_weight = false;  // One number for all channels, called g.
};

class RmsNormImpl : public torch::nn::Module {
 public:
  explicit RmsNormImpl(const RmsNormConfig& config);

  at::Tensor forward(const at::Tensor& x);

  kernels::ResidualNorm norm() const {
    return {.weight = weight_, .eps = eps_};
  }

 private:
  double eps_;
  at::Tensor weight_;
};
TORCH_MODULE(RmsNorm);

}  // namespace lockstep::nn

// Normalisation over the last dimension.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

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

// x / sqrt(mean(x^2) + eps) * weight, computed and returned in the wider type
// of x and weight. weight: one number per channel, a single number, or
// undefined for 1.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

struct RmsNormConfig {
  int64_t size = 384;
  double eps = 1e-6;
  bool has_scalar_weight = false;  // One number for all channels, called g.
};

class RmsNormImpl : public torch::nn::Module {
 public:
  explicit RmsNormImpl(const RmsNormConfig& config);

  at::Tensor forward(const at::Tensor& x);

 private:
  double eps_;
  at::Tensor weight_;
};
TORCH_MODULE(RmsNorm);

}  // namespace lockstep::nn

#include "lockstep/nn/mlp.h"

#include <ATen/ATen.h>

#include "lockstep/nn/linear.h"

namespace lockstep {

Mlp::Mlp(const MlpConfig& config) {
  fc1_ = register_module("fc1", torch::nn::Linear(config.width, config.hidden));
  fc2_ = register_module("fc2", torch::nn::Linear(config.hidden, config.width));
}

at::Tensor Mlp::forward(const at::Tensor& tokens) {
  return apply_linear(fc2_, at::gelu(apply_linear(fc1_, tokens), "tanh"));
}

SwiGlu::SwiGlu(const SwiGluConfig& config) : config_(config) {
  w12_ = register_module("w12",
                         torch::nn::Linear(config.width, 2 * config.hidden));
  w3_ = register_module("w3", torch::nn::Linear(config.hidden, config.width));
}

at::Tensor SwiGlu::forward(const at::Tensor& tokens) {
  const auto half = apply_linear(w12_, tokens).chunk(2, -1);
  at::Tensor hidden = at::silu(half[0]) * half[1];
  if (config_.dropout != 0) {
    hidden = at::dropout(hidden, config_.dropout, is_training());
  }
  return apply_linear(w3_, hidden);
}

}  // namespace lockstep

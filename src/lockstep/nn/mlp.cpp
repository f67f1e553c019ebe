#include "lockstep/nn/mlp.h"

#include <ATen/ATen.h>

namespace lockstep {

Mlp::Mlp(const MlpConfig& config) {
  fc1_ = register_module("fc1", torch::nn::Linear(config.width, config.hidden));
  fc2_ = register_module("fc2", torch::nn::Linear(config.hidden, config.width));
}

at::Tensor Mlp::forward(const at::Tensor& tokens) {
  return fc2_->forward(at::gelu(fc1_->forward(tokens), "tanh"));
}

}  // namespace lockstep

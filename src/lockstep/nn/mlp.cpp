#include "lockstep/nn/mlp.h"

#include <ATen/ATen.h>

#include "lockstep/kernels/activation.h"

namespace lockstep::nn {

Mlp::Mlp(const MlpConfig& config) : config_(config) {
  const MlpNames& names = config.names;
  const bool is_packed =
      config.activation == Activation::kSwiGlu && names.up.empty();
  first_ = register_module(
      names.first,
      Linear(config.width, is_packed ? 2 * config.hidden : config.hidden,
             config.bias));
  if (!names.up.empty()) {
    up_ = register_module(names.up,
                          Linear(config.width, config.hidden, config.bias));
  }
  last_ = register_module(
      names.last,
      Linear(config.hidden, config.out.value_or(config.width), config.bias));
}

at::Tensor Mlp::forward(const at::Tensor& x) {
  return last_->forward(hidden(x));
}

kernels::ResidualBranch Mlp::forward_to_residual(const at::Tensor& x) {
  return last_->forward_to_residual(hidden(x));
}

at::Tensor Mlp::hidden(const at::Tensor& x) {
  const at::Tensor values = activated(x);
  if (config_.dropout == 0) return values;
  return at::dropout(values, config_.dropout, is_training());
}

at::Tensor Mlp::activated(const at::Tensor& x) {
  if (!up_.is_empty()) return at::silu(first_->forward(x)) * up_->forward(x);
  return kernels::linear_activation(x, first_->weight, first_->bias,
                                    config_.activation);
}

}  // namespace lockstep::nn

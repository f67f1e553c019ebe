#include "lockstep/nn/mlp.h"

#include <ATen/ATen.h>

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
  at::Tensor hidden = activated(x);
  if (config_.dropout != 0) {
    hidden = at::dropout(hidden, config_.dropout, is_training());
  }
  return last_->forward(hidden);
}

at::Tensor Mlp::activated(const at::Tensor& x) {
  const at::Tensor first = first_->forward(x);
  switch (config_.activation) {
    case Activation::kGelu: return at::gelu(first);
    case Activation::kGeluTanh: return at::gelu(first, "tanh");
    case Activation::kSilu: return at::silu(first);
    case Activation::kSwiGlu: break;
  }
  if (!up_.is_empty()) return at::silu(first) * up_->forward(x);
  const auto halves = first.chunk(2, -1);
  return at::silu(halves[0]) * halves[1];
}

}  // namespace lockstep::nn

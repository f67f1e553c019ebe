#include "lockstep/nn/adaln.h"

#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>

#include "lockstep/nn/init.h"

namespace lockstep::nn {
namespace {

void zero_weights(const Linear& linear) {
  torch::nn::init::zeros_(linear->weight);
  torch::nn::init::zeros_(linear->bias);
}

torch::nn::Sequential make_modulation(int64_t width, int64_t num_parts) {
  const Linear linear(width, num_parts * width);
  zero_weights(linear);
  return torch::nn::Sequential(torch::nn::SiLU(), linear);
}

}  // namespace

at::Tensor modulate(const at::Tensor& x, const Modulation& modulation) {
  return x * (1 + modulation.scale.unsqueeze(1)) +
         modulation.shift.unsqueeze(1);
}

AdaLnBlock::AdaLnBlock(const AdaLnBlockConfig& config) {
  norm1_ = register_module("norm1", RmsNorm(config.norm));
  attn_ =
      register_module("attn", std::make_shared<Attention>(config.attention));
  norm2_ = register_module("norm2", RmsNorm(config.norm));
  mlp_ = register_module("mlp", std::make_shared<Mlp>(config.mlp));
  reset_linear_layers(*this);
  modulation_ =
      register_module("adaLN_modulation", make_modulation(config.norm.size, 6));
}

at::Tensor AdaLnBlock::forward(const at::Tensor& x, const at::Tensor& condition,
                               const kernels::RopeTable* rope) {
  const auto part = modulation_->forward(condition).chunk(6, 1);
  const at::Tensor attended = attn_->forward(
      modulate(norm1_->forward(x), {.shift = part[0], .scale = part[1]}),
      {.rope = rope});
  const at::Tensor y = x + part[2].unsqueeze(1) * attended;
  const at::Tensor fed_forward = mlp_->forward(
      modulate(norm2_->forward(y), {.shift = part[3], .scale = part[4]}));
  return y + part[5].unsqueeze(1) * fed_forward;
}

AdaLnFinalLayer::AdaLnFinalLayer(const AdaLnFinalLayerConfig& config)
    : order_(config.order) {
  norm_ = register_module("norm_final", RmsNorm(config.norm));
  linear_ = register_module("linear", Linear(config.norm.size, config.out));
  zero_weights(linear_);
  modulation_ =
      register_module("adaLN_modulation", make_modulation(config.norm.size, 2));
}

at::Tensor AdaLnFinalLayer::forward(const at::Tensor& x,
                                    const at::Tensor& condition) {
  const auto part = modulation_->forward(condition).chunk(2, 1);
  const bool is_shift_first = order_ == ModulationOrder::kShiftScale;
  return linear_->forward(
      modulate(norm_->forward(x), {.shift = part[is_shift_first ? 0 : 1],
                                   .scale = part[is_shift_first ? 1 : 0]}));
}

}  // namespace lockstep::nn

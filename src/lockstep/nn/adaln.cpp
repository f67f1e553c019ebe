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

at::Tensor joined(const ResidualStream& stream) {
  return kernels::add_branch(stream.x, stream.branch);
}

ResidualStream slice_tokens(const ResidualStream& stream, int64_t begin,
                            int64_t end) {
  ResidualStream part = stream;
  part.x = stream.x.slice(1, begin, end);
  if (stream.branch.out.defined()) {
    part.branch.out = stream.branch.out.slice(1, begin, end);
  }
  return part;
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

ResidualStream AdaLnBlock::forward(const ResidualStream& stream,
                                   const at::Tensor& condition,
                                   const kernels::RopeTable* rope) {
  const auto part = modulation_->forward(condition).chunk(6, 1);
  const kernels::AdaLnResult first =
      kernels::adaln_residual(stream.x, stream.branch, norm1_->norm(),
                              {.shift = part[0], .scale = part[1]});
  kernels::ResidualBranch attended =
      attn_->forward_to_residual(first.normed, {.rope = rope});
  attended.gate = part[2];
  const kernels::AdaLnResult second =
      kernels::adaln_residual(first.sum, attended, norm2_->norm(),
                              {.shift = part[3], .scale = part[4]});
  kernels::ResidualBranch fed_forward =
      mlp_->forward_to_residual(second.normed);
  fed_forward.gate = part[5];
  return {.x = second.sum, .branch = fed_forward};
}

AdaLnFinalLayer::AdaLnFinalLayer(const AdaLnFinalLayerConfig& config)
    : order_(config.order) {
  norm_ = register_module("norm_final", RmsNorm(config.norm));
  linear_ = register_module("linear", Linear(config.norm.size, config.out));
  zero_weights(linear_);
  modulation_ =
      register_module("adaLN_modulation", make_modulation(config.norm.size, 2));
}

at::Tensor AdaLnFinalLayer::forward(const ResidualStream& stream,
                                    const at::Tensor& condition) {
  const auto part = modulation_->forward(condition).chunk(2, 1);
  const bool is_shift_first = order_ == ModulationOrder::kShiftScale;
  const kernels::AdaLnResult result =
      kernels::adaln_residual(stream.x, stream.branch, norm_->norm(),
                              {.shift = part[is_shift_first ? 0 : 1],
                               .scale = part[is_shift_first ? 1 : 0]});
  return linear_->forward(result.normed);
}

}  // namespace lockstep::nn

#include "lockstep/models/vggt/block.h"

#include <ATen/ATen.h>

#include "lockstep/nn/weights.h"

namespace lockstep::vggt {
namespace {

constexpr int64_t kMlpRatio = 4;

}  // namespace

class VggtBlock::LayerScale : public torch::nn::Module {
 public:
  explicit LayerScale(int64_t width)
      : gamma_(register_parameter("gamma", nn::new_weight({width}))) {}

  at::Tensor forward(const at::Tensor& x, const at::Tensor& branch) {
    return at::addcmul(x, branch, gamma_);
  }

 private:
  at::Tensor gamma_;
};

VggtBlock::VggtBlock(const VggtBlockConfig& config) {
  const int64_t width = config.width;
  norm1_ = register_module("norm1", nn::LayerNorm(width, config.norm_eps));
  attn_ = register_module("attn",
                          std::make_shared<nn::Attention>(nn::AttentionConfig{
                              .width = width,
                              .num_heads = config.num_heads,
                              .qk_norm = config.has_rope ? nn::QkNorm::kLayer
                                                         : nn::QkNorm::kNone}));
  ls1_ = register_module("ls1", std::make_shared<LayerScale>(width));
  norm2_ = register_module("norm2", nn::LayerNorm(width, config.norm_eps));
  mlp_ =
      register_module("mlp", std::make_shared<nn::Mlp>(nn::MlpConfig{
                                 .width = width, .hidden = kMlpRatio * width}));
  ls2_ = register_module("ls2", std::make_shared<LayerScale>(width));
}

at::Tensor VggtBlock::forward(const at::Tensor& tokens,
                              const kernels::RopeTable* rope) {
  const at::Tensor x = ls1_->forward(
      tokens, attn_->forward(norm1_->forward(tokens), {.rope = rope}));
  return ls2_->forward(x, mlp_->forward(norm2_->forward(x)));
}

std::vector<std::shared_ptr<VggtBlock>> register_blocks(
    torch::nn::Module& module, const std::string& name, int64_t count,
    const VggtBlockConfig& config) {
  const auto list =
      module.register_module(name, std::make_shared<torch::nn::Module>());
  std::vector<std::shared_ptr<VggtBlock>> blocks;
  for (int64_t i = 0; i < count; ++i) {
    blocks.push_back(list->register_module(
        std::to_string(i), std::make_shared<VggtBlock>(config)));
  }
  return blocks;
}

}  // namespace lockstep::vggt

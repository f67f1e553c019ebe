#include "lockstep/models/vggt/block.h"

#include <ATen/ATen.h>

namespace lockstep {
namespace {

constexpr int64_t kMlpRatio = 4;
constexpr double kQkNormEps = 1e-5;

}  // namespace

class VggtBlock::LayerScale : public torch::nn::Module {
 public:
  explicit LayerScale(int64_t width)
      : gamma_(register_parameter("gamma", bare_tensor({width}))) {}

  at::Tensor forward(const at::Tensor& x, const at::Tensor& branch) {
    return at::addcmul(x, branch, gamma_);
  }

 private:
  at::Tensor gamma_;
};

VggtAttention::VggtAttention(const VggtBlockConfig& config) : config_(config) {
  const int64_t width = config.width;
  qkv_ = register_module("qkv", std::make_shared<BareLinear>(width, 3 * width));
  if (config.has_places) {
    const int64_t size = width / config.num_heads;
    q_norm_ = register_module(
        "q_norm", std::make_shared<BareLayerNorm>(size, kQkNormEps));
    k_norm_ = register_module(
        "k_norm", std::make_shared<BareLayerNorm>(size, kQkNormEps));
  }
  proj_ = register_module("proj", std::make_shared<BareLinear>(width, width));
}

at::Tensor VggtAttention::forward(const at::Tensor& tokens,
                                  const RopeTable* rotations) {
  const int64_t batch = tokens.size(0);
  const int64_t count = tokens.size(1);
  const at::Tensor qkv = qkv_->forward(tokens).view(
      {batch, count, 3, config_.num_heads, config_.width / config_.num_heads});
  QueriesAndKeys heads;  // [B, N, heads, size] each.
  if (rotations != nullptr) {
    heads = qk_norm_rope(
        qkv, {.of_queries = q_norm_->norm(), .of_keys = k_norm_->norm()},
        *rotations);
  } else {
    heads = {.queries = qkv.select(2, 0), .keys = qkv.select(2, 1)};
  }
  // Heads stay where they lie: the fast kernels take any strides but the last.
  const at::Tensor mixed = at::scaled_dot_product_attention(
      heads.queries.transpose(1, 2), heads.keys.transpose(1, 2),
      qkv.select(2, 2).transpose(1, 2));
  return proj_->forward(
      mixed.transpose(1, 2).reshape({batch, count, config_.width}));
}

VggtMlp::VggtMlp(const VggtMlpConfig& config)
    : fc1_(register_module(
          "fc1", std::make_shared<BareLinear>(config.in, config.hidden))),
      fc2_(register_module(
          "fc2", std::make_shared<BareLinear>(config.hidden, config.out))) {}

at::Tensor VggtMlp::forward(const at::Tensor& x) {
  return fc2_->forward(at::gelu(fc1_->forward(x)));
}

VggtBlock::VggtBlock(const VggtBlockConfig& config) {
  const int64_t width = config.width;
  const auto norm = [&] {
    return std::make_shared<BareLayerNorm>(width, config.norm_eps);
  };
  norm1_ = register_module("norm1", norm());
  attn_ = register_module("attn", std::make_shared<VggtAttention>(config));
  ls1_ = register_module("ls1", std::make_shared<LayerScale>(width));
  norm2_ = register_module("norm2", norm());
  mlp_ = register_module(
      "mlp", std::make_shared<VggtMlp>(VggtMlpConfig{
                 .in = width, .hidden = kMlpRatio * width, .out = width}));
  ls2_ = register_module("ls2", std::make_shared<LayerScale>(width));
}

at::Tensor VggtBlock::forward(const at::Tensor& tokens,
                              const RopeTable* rotations) {
  const at::Tensor x =
      ls1_->forward(tokens, attn_->forward(norm1_->forward(tokens), rotations));
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

}  // namespace lockstep

#include "lockstep/nn/attention.h"

#include <ATen/ATen.h>

namespace lockstep {

SelfAttention::SelfAttention(const AttentionConfig& config) : config_(config) {
  const int64_t width = config.width;
  qkv_ = register_module("qkv", torch::nn::Linear(width, 3 * width));
  proj_ = register_module("proj", torch::nn::Linear(width, width));
}

at::Tensor SelfAttention::forward(const at::Tensor& tokens) {
  const int64_t batch = tokens.size(0);
  const int64_t count = tokens.size(1);
  const auto qkv = qkv_->forward(tokens)
                       .view({batch, count, 3, config_.num_heads,
                              config_.width / config_.num_heads})
                       .permute({2, 0, 3, 1, 4})  // [3, B, heads, N, size]
                       .unbind(0);
  const at::Tensor mixed =
      at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]);
  return proj_->forward(
      mixed.transpose(1, 2).reshape({batch, count, config_.width}));
}

}  // namespace lockstep

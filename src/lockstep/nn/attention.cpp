#include "lockstep/nn/attention.h"

#include <ATen/ATen.h>

#include "lockstep/nn/linear.h"
#include "lockstep/nn/rope.h"

namespace lockstep {

SelfAttention::SelfAttention(const AttentionConfig& config) : config_(config) {
  const int64_t width = config.width;
  if (config.qk_norm == QkNorm::kRms) {
    const int64_t size = width / config.num_heads;
    q_norm_ = register_module("q_norm", std::make_shared<RmsNorm>(size));
    k_norm_ = register_module("k_norm", std::make_shared<RmsNorm>(size));
  }
  qkv_ = register_module("qkv", torch::nn::Linear(width, 3 * width));
  proj_ = register_module("proj", torch::nn::Linear(width, width));
}

at::Tensor SelfAttention::forward(const at::Tensor& tokens,
                                  const at::Tensor& rotations) {
  const int64_t batch = tokens.size(0);
  const int64_t count = tokens.size(1);
  auto qkv = apply_linear(qkv_, tokens)
                 .view({batch, count, 3, config_.num_heads,
                        config_.width / config_.num_heads})
                 .unbind(2);  // [B, N, heads, size] each.
  if (q_norm_) {
    qkv[0] = q_norm_->forward(qkv[0]);
    qkv[1] = k_norm_->forward(qkv[1]);
  }
  if (rotations.defined()) {
    const at::Tensor of_all_heads = rotations.unsqueeze(1);
    qkv[0] = apply_rope(qkv[0], of_all_heads);
    qkv[1] = apply_rope(qkv[1], of_all_heads);
  }
  // Products of queries and keys are summed in float32 also under bf16
  // autocast; only what is multiplied has fewer bits.
  const at::Tensor mixed = at::scaled_dot_product_attention(
      qkv[0].transpose(1, 2), qkv[1].transpose(1, 2), qkv[2].transpose(1, 2),
      /*attn_mask=*/{}, is_training() ? config_.attn_dropout : 0);
  const at::Tensor projected = apply_linear(
      proj_, mixed.transpose(1, 2).reshape({batch, count, config_.width}));
  if (config_.proj_dropout == 0) return projected;
  return at::dropout(projected, config_.proj_dropout, is_training());
}

}  // namespace lockstep

// Attention of tokens to each other.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <memory>

#include "lockstep/nn/norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep {

enum class QkNorm { kNone, kRms };

struct AttentionConfig {
  int64_t width = 384;
  int64_t num_heads = 6;  // Divides the width.
  // Of queries and keys, each head by itself.
  QkNorm qk_norm = QkNorm::kNone;
  double attn_dropout = 0;  // Of the weights of attention.
  double proj_dropout = 0;  // Of what leaves.
};

// All tokens to all tokens. Parameters are named as in timm: q_norm, k_norm,
// qkv, proj.
class SelfAttention : public torch::nn::Module {
 public:
  explicit SelfAttention(const AttentionConfig& config);

  // [B, N, width] -> the same. Queries and keys are turned by rotations (see
  // rope.h) when there are any.
  at::Tensor forward(const at::Tensor& tokens,
                     const at::Tensor& rotations = {});

 private:
  AttentionConfig config_;
  std::shared_ptr<RmsNorm> q_norm_;
  std::shared_ptr<RmsNorm> k_norm_;
  torch::nn::Linear qkv_{nullptr};
  torch::nn::Linear proj_{nullptr};
};

}  // namespace lockstep

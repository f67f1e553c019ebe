// Attention of tokens to each other.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/tensor/tensor.h"

namespace lockstep {

struct AttentionConfig {
  int64_t width = 384;
  int64_t num_heads = 6;  // Divides the width.
};

// All tokens to all tokens. Parameters are named as in timm: qkv, proj.
class SelfAttention : public torch::nn::Module {
 public:
  explicit SelfAttention(const AttentionConfig& config);

  // [B, N, width] -> the same.
  at::Tensor forward(const at::Tensor& tokens);

 private:
  AttentionConfig config_;
  torch::nn::Linear qkv_{nullptr};
  torch::nn::Linear proj_{nullptr};
};

}  // namespace lockstep

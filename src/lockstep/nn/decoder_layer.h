// Layers of torch's nn.TransformerDecoderLayer, by its parameters: tokens look
// at each other, at others, and think for themselves.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cstdint>
#include <memory>

#include "lockstep/tensor/tensor.h"

namespace lockstep {

enum class NormPlace {
  kPreNorm,   // norm_first: of what a part gets.
  kPostNorm,  // Of the sum that a part gives.
};

struct DecoderLayerConfig {
  int64_t width = 256;
  int64_t num_heads = 8;
  int64_t feed_forward = 1024;
  double dropout = 0.1;
  NormPlace norm = NormPlace::kPostNorm;
};

// bool [B, 1, 1, keys], true where a key is; undefined: all are. A row without
// any key has no meaning.
struct DecoderLayerMasks {
  at::Tensor own = {};
  at::Tensor others = {};
};

class MultiheadAttention;

class DecoderLayer : public torch::nn::Module {
 public:
  explicit DecoderLayer(const DecoderLayerConfig& config);

  // x [B, N, width], others [B, M, width] -> [B, N, width]
  at::Tensor forward(at::Tensor x, const at::Tensor& others,
                     const DecoderLayerMasks& masks);

 private:
  at::Tensor dropped(const at::Tensor& x) const;
  at::Tensor feed_forward(const at::Tensor& x);

  DecoderLayerConfig config_;
  std::shared_ptr<MultiheadAttention> self_attn_;
  std::shared_ptr<MultiheadAttention> cross_attn_;
  torch::nn::Linear linear1_{nullptr};
  torch::nn::Linear linear2_{nullptr};
  torch::nn::LayerNorm norm1_{nullptr};
  torch::nn::LayerNorm norm2_{nullptr};
  torch::nn::LayerNorm norm3_{nullptr};
};

}  // namespace lockstep

// torch's nn.TransformerDecoderLayer with GELU: self-attention, cross-attention
// and feed-forward, with the same parameters.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "lockstep/nn/attention.h"
#include "lockstep/nn/linear.h"
#include "lockstep/nn/norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

enum class NormPlace {
  kPreNorm,   // norm_first: normalises the input of each part.
  kPostNorm,  // Normalises the residual sum of each part.
};

struct DecoderLayerConfig {
  int64_t width = 256;
  int64_t num_heads = 8;
  int64_t feed_forward = 1024;
  double dropout = 0.1;
  NormPlace norm = NormPlace::kPostNorm;
};

// bool [B, 1, 1, keys], true where a key is attended to; unset: all. Each row
// needs at least one.
struct DecoderLayerMasks {
  std::optional<at::Tensor> self = {};
  std::optional<at::Tensor> cross = {};
};

class DecoderLayer : public torch::nn::Module {
 public:
  explicit DecoderLayer(const DecoderLayerConfig& config);

  // x [B, N, width], context [B, M, width] -> [B, N, width]
  at::Tensor forward(at::Tensor x, const at::Tensor& context,
                     const DecoderLayerMasks& masks);

 private:
  at::Tensor dropped(const at::Tensor& x) const;
  at::Tensor feed_forward(const at::Tensor& x);

  DecoderLayerConfig config_;
  std::shared_ptr<Attention> self_attn_;
  std::shared_ptr<Attention> cross_attn_;
  Linear linear1_{nullptr};
  Linear linear2_{nullptr};
  LayerNorm norm1_{nullptr};
  LayerNorm norm2_{nullptr};
  LayerNorm norm3_{nullptr};
};

}  // namespace lockstep::nn

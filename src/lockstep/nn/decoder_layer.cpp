#include "lockstep/nn/decoder_layer.h"

#include <ATen/ATen.h>

namespace lockstep::nn {

DecoderLayer::DecoderLayer(const DecoderLayerConfig& config) : config_(config) {
  const int64_t width = config.width;
  const AttentionConfig attention{.width = width,
                                  .num_heads = config.num_heads,
                                  .names = AttentionNames::kTorch,
                                  .attn_dropout = config.dropout,
                                  .proj_dropout = config.dropout};
  self_attn_ =
      register_module("self_attn", std::make_shared<Attention>(attention));
  cross_attn_ =
      register_module("multihead_attn", std::make_shared<Attention>(attention));
  // In checkpoints both layers are direct children, not in an Mlp module.
  linear1_ = register_module("linear1", Linear(width, config.feed_forward));
  linear2_ = register_module("linear2", Linear(config.feed_forward, width));
  norm1_ = register_module("norm1", LayerNorm(width));
  norm2_ = register_module("norm2", LayerNorm(width));
  norm3_ = register_module("norm3", LayerNorm(width));
}

at::Tensor DecoderLayer::forward(at::Tensor x, const at::Tensor& context,
                                 const DecoderLayerMasks& masks) {
  if (config_.norm == NormPlace::kPreNorm) {
    x = x + self_attn_->forward(norm1_->forward(x), {.mask = masks.self});
    x = x + cross_attn_->cross_attend(norm2_->forward(x), context, masks.cross);
    return x + feed_forward(norm3_->forward(x));
  }
  x = norm1_->forward(x + self_attn_->forward(x, {.mask = masks.self}));
  x = norm2_->forward(x + cross_attn_->cross_attend(x, context, masks.cross));
  return norm3_->forward(x + feed_forward(x));
}

at::Tensor DecoderLayer::feed_forward(const at::Tensor& x) {
  const at::Tensor inner = dropped(at::gelu(linear1_->forward(x)));
  return dropped(linear2_->forward(inner));
}

at::Tensor DecoderLayer::dropped(const at::Tensor& x) const {
  return config_.dropout > 0 ? at::dropout(x, config_.dropout, is_training())
                             : x;
}

}  // namespace lockstep::nn

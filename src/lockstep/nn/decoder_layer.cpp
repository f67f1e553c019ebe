#include "lockstep/nn/decoder_layer.h"

#include <torch/torch.h>

#include "lockstep/nn/linear.h"

namespace lockstep {
namespace {

torch::nn::LayerNorm make_norm(int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

}  // namespace

// torch's nn.MultiheadAttention.
class MultiheadAttention : public torch::nn::Module {
 public:
  explicit MultiheadAttention(const DecoderLayerConfig& config)
      : config_(config) {
    const int64_t width = config.width;
    in_weight_ = register_parameter(
        "in_proj_weight",
        torch::nn::init::xavier_uniform_(torch::empty({3 * width, width})));
    in_bias_ = register_parameter("in_proj_bias", torch::zeros({3 * width}));
    out_ = register_module("out_proj", torch::nn::Linear(width, width));
    torch::nn::init::zeros_(out_->bias);
  }

  at::Tensor self_attend(const at::Tensor& x, const at::Tensor& mask) {
    const auto qkv = at::linear(x, in_weight_, in_bias_).chunk(3, -1);
    return attend(qkv[0], qkv[1], qkv[2], mask);
  }

  at::Tensor cross_attend(const at::Tensor& x, const at::Tensor& others,
                          const at::Tensor& mask) {
    const int64_t width = config_.width;
    const at::Tensor q = at::linear(x, in_weight_.slice(0, 0, width),
                                    in_bias_.slice(0, 0, width));
    const auto kv =
        at::linear(others, in_weight_.slice(0, width), in_bias_.slice(0, width))
            .chunk(2, -1);
    return attend(q, kv[0], kv[1], mask);
  }

 private:
  at::Tensor heads(const at::Tensor& x) const {
    return x.unflatten(-1, {config_.num_heads, -1}).transpose(1, 2);
  }

  at::Tensor attend(const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v, const at::Tensor& mask) {
    const auto given =
        mask.defined() ? std::optional<at::Tensor>(mask) : std::nullopt;
    const at::Tensor mixed =
        at::scaled_dot_product_attention(heads(q), heads(k), heads(v), given,
                                         is_training() ? config_.dropout : 0);
    return apply_linear(out_, mixed.transpose(1, 2).flatten(2));
  }

  DecoderLayerConfig config_;
  at::Tensor in_weight_;
  at::Tensor in_bias_;
  torch::nn::Linear out_{nullptr};
};

DecoderLayer::DecoderLayer(const DecoderLayerConfig& config) : config_(config) {
  const int64_t width = config.width;
  self_attn_ = register_module("self_attn",
                               std::make_shared<MultiheadAttention>(config));
  cross_attn_ = register_module("multihead_attn",
                                std::make_shared<MultiheadAttention>(config));
  linear1_ =
      register_module("linear1", torch::nn::Linear(width, config.feed_forward));
  linear2_ =
      register_module("linear2", torch::nn::Linear(config.feed_forward, width));
  norm1_ = register_module("norm1", make_norm(width));
  norm2_ = register_module("norm2", make_norm(width));
  norm3_ = register_module("norm3", make_norm(width));
}

at::Tensor DecoderLayer::forward(at::Tensor x, const at::Tensor& others,
                                 const DecoderLayerMasks& masks) {
  if (config_.norm == NormPlace::kPreNorm) {
    x = x + dropped(self_attn_->self_attend(norm1_->forward(x), masks.own));
    x = x + dropped(cross_attn_->cross_attend(norm2_->forward(x), others,
                                              masks.others));
    return x + feed_forward(norm3_->forward(x));
  }
  x = norm1_->forward(x + dropped(self_attn_->self_attend(x, masks.own)));
  x = norm2_->forward(
      x + dropped(cross_attn_->cross_attend(x, others, masks.others)));
  return norm3_->forward(x + feed_forward(x));
}

at::Tensor DecoderLayer::feed_forward(const at::Tensor& x) {
  const at::Tensor inner = dropped(at::gelu(apply_linear(linear1_, x)));
  return dropped(apply_linear(linear2_, inner));
}

at::Tensor DecoderLayer::dropped(const at::Tensor& x) const {
  return config_.dropout > 0 ? at::dropout(x, config_.dropout, is_training())
                             : x;
}

}  // namespace lockstep

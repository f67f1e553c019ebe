#include "lockstep/models/llama/llama.h"

#include <ATen/ATen.h>

#include <numbers>
#include <string>

#include "lockstep/nn/attention.h"
#include "lockstep/nn/mlp.h"
#include "lockstep/nn/rope_tables.h"
#include "lockstep/nn/weights.h"

namespace lockstep::llama {

using at::Tensor;

namespace {

nn::RmsNorm make_norm(const LlamaConfig& config) {
  return nn::RmsNorm(
      nn::RmsNormConfig{.size = config.hidden_size, .eps = config.norm_eps});
}

// Added to the scores, [B, 1, T, T]. Masked scores get a very low finite
// number: with minus infinity a fully masked row would become NaN. Built once
// for all layers, with rows aligned for the kernels.
Tensor make_causal_mask(const Tensor& mask, const at::TensorOptions& options) {
  constexpr int64_t kAlignment = 8;
  const int64_t count = mask.size(1);
  const int64_t row = (count + kAlignment - 1) / kAlignment * kAlignment;
  const double lowest = options.dtype() == at::kHalf ? -65504 : -3e38;
  const Tensor causal =
      at::ones({count, count}, mask.options().dtype(at::kBool)).tril();
  const Tensor seen = mask.to(at::kBool).unsqueeze(1).unsqueeze(1) & causal;
  return at::zeros({mask.size(0), 1, count, row}, options)
      .narrow(-1, 0, count)
      .masked_fill_(seen.logical_not(), lowest);
}

// Lower frequencies for pairs that rotate rarely within the old context.
Tensor scaled(const Tensor& frequencies, const LlamaRopeScaling& scaling) {
  const auto context = static_cast<double>(scaling.old_context);
  const Tensor rotations = context / (2 * std::numbers::pi / frequencies);
  const Tensor kept = ((rotations - scaling.low_factor) /
                       (scaling.high_factor - scaling.low_factor))
                          .clamp(0, 1);
  return (1 - kept) * frequencies / scaling.factor + kept * frequencies;
}

// float32 [head_size / 2]
Tensor rope_frequencies(const LlamaConfig& config) {
  const Tensor exponents = at::arange(0, config.head_size, 2, at::kFloat) /
                           static_cast<double>(config.head_size);
  const Tensor frequencies = at::pow(config.rope_theta, exponents).reciprocal();
  return config.rope_scaling ? scaled(frequencies, *config.rope_scaling)
                             : frequencies;
}

}  // namespace

class LlamaLayer : public torch::nn::Module {
 public:
  explicit LlamaLayer(const LlamaConfig& config) {
    attention_ = register_module(
        "self_attn", std::make_shared<nn::Attention>(nn::AttentionConfig{
                         .width = config.hidden_size,
                         .num_heads = config.num_heads,
                         .num_kv_heads = config.num_kv_heads,
                         .head_size = config.head_size,
                         .names = nn::AttentionNames::kLlama,
                         .qkv_bias = nn::Bias::kNo,
                         .proj_bias = nn::Bias::kNo}));
    mlp_ = register_module("mlp", std::make_shared<nn::Mlp>(nn::MlpConfig{
                                      .width = config.hidden_size,
                                      .hidden = config.mlp_size,
                                      .activation = nn::Activation::kSwiGlu,
                                      .bias = nn::Bias::kNo,
                                      .names = {.first = "gate_proj",
                                                .last = "down_proj",
                                                .up = "up_proj"}}));
    input_norm_ = register_module("input_layernorm", make_norm(config));
    mlp_norm_ = register_module("post_attention_layernorm", make_norm(config));
  }

  Tensor forward(const Tensor& x, const nn::AttentionInput& input) {
    const Tensor y = x + attention_->forward(input_norm_->forward(x), input);
    return y + mlp_->forward(mlp_norm_->forward(y));
  }

 private:
  std::shared_ptr<nn::Attention> attention_;
  std::shared_ptr<nn::Mlp> mlp_;
  nn::RmsNorm input_norm_{nullptr};
  nn::RmsNorm mlp_norm_{nullptr};
};

Llama::Llama(const LlamaConfig& config) : config_(config) {
  const nn::UninitialisedWeights weights_come_later;
  embed_tokens_ = register_module(
      "embed_tokens", nn::Embedding(config.vocab_size, config.hidden_size));
  // Only adds a prefix to names.
  const auto layers =
      register_module("layers", std::make_shared<torch::nn::Module>());
  for (int64_t i = 0; i < config.num_layers; ++i) {
    layers_.push_back(layers->register_module(
        std::to_string(i), std::make_shared<LlamaLayer>(config)));
  }
  norm_ = register_module("norm", make_norm(config));
}

// The table grows by doubling, so it is rarely rebuilt.
const kernels::RopeTable& Llama::rope_of(const Tensor& hidden) {
  constexpr int64_t kFewest = 128;
  const int64_t count = hidden.size(1);
  if (rope_.cos.defined() && rope_.cos.size(0) >= count &&
      rope_.cos.device() == hidden.device() &&
      rope_.cos.scalar_type() == hidden.scalar_type()) {
    return rope_;
  }
  // The table outlives this pass, which may run in inference mode.
  const c10::InferenceMode with_gradients(false);
  int64_t positions = kFewest;
  while (positions < count) positions *= 2;
  rope_ = kernels::moved_to(
      nn::sequence_rope_table(rope_frequencies(config_), positions),
      at::TensorOptions(hidden.device()).dtype(hidden.scalar_type()));
  return rope_;
}

Tensor Llama::forward(const Tensor& ids, const Tensor& mask) {
  Tensor hidden = embed_tokens_->forward(ids);
  const kernels::RopeTable rope =
      kernels::slice_positions(rope_of(hidden), 0, ids.size(1));
  nn::AttentionInput input{.rope = &rope, .is_causal = !mask.defined()};
  if (mask.defined()) input.mask = make_causal_mask(mask, hidden.options());
  for (const auto& layer : layers_) hidden = layer->forward(hidden, input);
  return norm_->forward(hidden);
}

}  // namespace lockstep::llama

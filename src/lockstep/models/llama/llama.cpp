#include "lockstep/models/llama/llama.h"

#include <ATen/ATen.h>

#include <numbers>
#include <optional>
#include <string>

namespace lockstep {

using at::Tensor;

class LlamaNorm : public torch::nn::Module {
 public:
  LlamaNorm(int64_t size, double eps)
      : eps_(eps), weight_(register_parameter("weight", bare_tensor({size}))) {}

  Tensor forward(const Tensor& x) {
    return at::rms_norm(x, weight_.sizes(), weight_, eps_);
  }

 private:
  double eps_;
  Tensor weight_;
};

namespace {

using Linear = std::shared_ptr<BareLinear>;

Linear add_linear(torch::nn::Module& module, const char* name, int64_t in,
                  int64_t out) {
  return module.register_module(
      name, std::make_shared<BareLinear>(in, out, Bias::kNo));
}

// What the layers of one pass share.
struct Pass {
  LlamaRotations rotations;
  // Added to products of queries and keys, [B, 1, T, T]; unset: each token sees
  // those before it.
  std::optional<Tensor> mask = {};
};

// x [B, T, heads, size]: channel i of the first half and of the second are a
// pair. The table of sines has the sign of the first half turned.
Tensor turn(const Tensor& x, const LlamaRotations& rotations) {
  return at::addcmul(x * rotations.cos, at::roll(x, x.size(-1) / 2, -1),
                     rotations.sin);
}

class LlamaAttention : public torch::nn::Module {
 public:
  explicit LlamaAttention(const LlamaConfig& config)
      : config_(config),
        q_proj_(add_linear(*this, "q_proj", config.hidden_size,
                           config.num_heads * config.head_size)),
        k_proj_(add_linear(*this, "k_proj", config.hidden_size,
                           config.num_kv_heads * config.head_size)),
        v_proj_(add_linear(*this, "v_proj", config.hidden_size,
                           config.num_kv_heads * config.head_size)),
        o_proj_(add_linear(*this, "o_proj", config.num_heads * config.head_size,
                           config.hidden_size)) {}

  Tensor forward(const Tensor& x, const Pass& pass) {
    const Tensor query = turn(in_heads(q_proj_->forward(x)), pass.rotations);
    const Tensor key = turn(in_heads(k_proj_->forward(x)), pass.rotations);
    const Tensor mixed = at::scaled_dot_product_attention(
        query.transpose(1, 2), for_all_heads(key),
        for_all_heads(in_heads(v_proj_->forward(x))), pass.mask,
        /*dropout_p=*/0, /*is_causal=*/!pass.mask);
    return o_proj_->forward(mixed.transpose(1, 2).flatten(2));
  }

 private:
  Tensor in_heads(const Tensor& x) const {
    return x.unflatten(-1, {-1, config_.head_size});
  }

  // [B, T, kv heads, size] -> [B, heads, T, size]: neighbours share one.
  Tensor for_all_heads(const Tensor& x) const {
    const int64_t share = config_.num_heads / config_.num_kv_heads;
    const Tensor by_head = x.transpose(1, 2);
    if (share == 1) return by_head;
    return by_head.unsqueeze(2).expand({-1, -1, share, -1, -1}).flatten(1, 2);
  }

  LlamaConfig config_;
  Linear q_proj_;
  Linear k_proj_;
  Linear v_proj_;
  Linear o_proj_;
};

class LlamaMlp : public torch::nn::Module {
 public:
  explicit LlamaMlp(const LlamaConfig& config)
      : gate_proj_(add_linear(*this, "gate_proj", config.hidden_size,
                              config.mlp_size)),
        up_proj_(
            add_linear(*this, "up_proj", config.hidden_size, config.mlp_size)),
        down_proj_(add_linear(*this, "down_proj", config.mlp_size,
                              config.hidden_size)) {}

  Tensor forward(const Tensor& x) {
    return down_proj_->forward(at::silu(gate_proj_->forward(x)) *
                               up_proj_->forward(x));
  }

 private:
  Linear gate_proj_;
  Linear up_proj_;
  Linear down_proj_;
};

// What is not seen gets a number so low that nothing is left of it, but a
// finite one: a token that sees nothing would become NaN, and all after it.
// Made once for all layers, with rows that begin where the kernels want them.
Tensor make_mask(const Tensor& mask, const at::TensorOptions& options) {
  constexpr int64_t kAlignment = 8;
  const int64_t count = mask.size(1);
  const int64_t row = (count + kAlignment - 1) / kAlignment * kAlignment;
  const double lowest = options.dtype() == at::kHalf ? -65504 : -3e38;
  const Tensor before =
      at::ones({count, count}, mask.options().dtype(at::kBool)).tril();
  const Tensor seen = mask.to(at::kBool).unsqueeze(1).unsqueeze(1) & before;
  return at::zeros({mask.size(0), 1, count, row}, options)
      .narrow(-1, 0, count)
      .masked_fill_(seen.logical_not(), lowest);
}

// A slower turning for pairs that turn rarely within the old context.
Tensor scaled(const Tensor& speeds, const LlamaRopeScaling& scaling) {
  const auto context = static_cast<double>(scaling.old_context);
  const Tensor turns = context / (2 * std::numbers::pi / speeds);
  const Tensor kept = ((turns - scaling.low_factor) /
                       (scaling.high_factor - scaling.low_factor))
                          .clamp(0, 1);
  return (1 - kept) * speeds / scaling.factor + kept * speeds;
}

}  // namespace

class LlamaLayer : public torch::nn::Module {
 public:
  explicit LlamaLayer(const LlamaConfig& config)
      : attention_(register_module("self_attn",
                                   std::make_shared<LlamaAttention>(config))),
        mlp_(register_module("mlp", std::make_shared<LlamaMlp>(config))),
        before_attention_(add_norm("input_layernorm", config)),
        before_mlp_(add_norm("post_attention_layernorm", config)) {}

  Tensor forward(const Tensor& x, const Pass& pass) {
    const Tensor mixed =
        x + attention_->forward(before_attention_->forward(x), pass);
    return mixed + mlp_->forward(before_mlp_->forward(mixed));
  }

 private:
  std::shared_ptr<LlamaNorm> add_norm(const char* name,
                                      const LlamaConfig& config) {
    return register_module(
        name, std::make_shared<LlamaNorm>(config.hidden_size, config.norm_eps));
  }

  std::shared_ptr<LlamaAttention> attention_;
  std::shared_ptr<LlamaMlp> mlp_;
  std::shared_ptr<LlamaNorm> before_attention_;
  std::shared_ptr<LlamaNorm> before_mlp_;
};

Tensor llama_speeds(const LlamaConfig& config) {
  const Tensor places = at::arange(0, config.head_size, 2, at::kFloat) /
                        static_cast<double>(config.head_size);
  const Tensor speeds = at::pow(config.rope_theta, places).reciprocal();
  return config.rope_scaling ? scaled(speeds, *config.rope_scaling) : speeds;
}

Llama::Llama(const LlamaConfig& config)
    : config_(config),
      embed_tokens_(register_module(
          "embed_tokens", std::make_shared<BareEmbedding>(
                              config.vocab_size, config.hidden_size))) {
  // Only a place for names.
  const auto layers =
      register_module("layers", std::make_shared<torch::nn::Module>());
  for (int64_t i = 0; i < config.num_layers; ++i) {
    layers_.push_back(layers->register_module(
        std::to_string(i), std::make_shared<LlamaLayer>(config)));
  }
  norm_ = register_module(
      "norm", std::make_shared<LlamaNorm>(config.hidden_size, config.norm_eps));
}

// The table grows by doubling, so that it is made a few times only.
const LlamaRotations& Llama::rotations_of(const Tensor& hidden) {
  constexpr int64_t kFewest = 128;
  const int64_t count = hidden.size(1);
  if (rotations_.cos.defined() && rotations_.cos.size(0) >= count &&
      rotations_.cos.device() == hidden.device() &&
      rotations_.cos.scalar_type() == hidden.scalar_type()) {
    return rotations_;
  }
  // They outlive the pass, which may be one without gradients.
  const c10::InferenceMode with_gradients(false);
  int64_t places = kFewest;
  while (places < count) places *= 2;
  const Tensor angles =
      at::outer(at::arange(places, at::kFloat), llama_speeds(config_));
  const auto table = [&](const Tensor& first, const Tensor& second) {
    return at::cat({first, second}, -1)
        .unsqueeze(1)
        .to(hidden.device(), hidden.scalar_type());
  };
  rotations_ = {.cos = table(angles.cos(), angles.cos()),
                .sin = table(-angles.sin(), angles.sin())};
  return rotations_;
}

Tensor Llama::forward(const Tensor& ids, const Tensor& mask) {
  Tensor hidden = embed_tokens_->forward(ids);
  const int64_t count = ids.size(1);
  const LlamaRotations& whole = rotations_of(hidden);
  Pass pass{.rotations = {.cos = whole.cos.narrow(0, 0, count),
                          .sin = whole.sin.narrow(0, 0, count)}};
  if (mask.defined()) pass.mask = make_mask(mask, hidden.options());
  for (const auto& layer : layers_) hidden = layer->forward(hidden, pass);
  return norm_->forward(hidden);
}

}  // namespace lockstep

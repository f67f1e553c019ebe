#include "lockstep/nn/attention.h"

#include <ATen/ATen.h>
#include <torch/nn/init.h>

#include "lockstep/kernels/attention.h"
#include "lockstep/kernels/linear.h"
#include "lockstep/kernels/qk_norm_rope.h"
#include "lockstep/kernels/qk_rms_rope.h"
#include "lockstep/nn/weights.h"

namespace lockstep::nn {

// [B, N, heads, size] each; keys and values may have fewer heads.
struct Attention::Heads {
  at::Tensor queries = {};
  at::Tensor keys = {};
  at::Tensor values = {};
  // [B, N, 3, heads, size]. Set instead of the others before norms and rope.
  kernels::LinearResult packed = {};
};

Attention::Heads Attention::heads_of(const kernels::QueriesKeysValues& heads) {
  return {.queries = heads.queries, .keys = heads.keys, .values = heads.values};
}

Attention::Attention(const AttentionConfig& config)
    : config_(config),
      head_size_(config.head_size.value_or(config.width / config.num_heads)) {
  switch (config.names) {
    case AttentionNames::kTimm:
      register_packed();
      register_norms();
      break;
    case AttentionNames::kJit:
      register_norms();
      register_packed();
      break;
    case AttentionNames::kTorch: register_in_proj(); break;
    case AttentionNames::kLlama: register_separate(); break;
  }
  const auto out_name = [&] {
    switch (config.names) {
      case AttentionNames::kTorch: return "out_proj";
      case AttentionNames::kLlama: return "o_proj";
      default: return "proj";
    }
  }();
  out_ = register_module(out_name, Linear(config.num_heads * head_size_,
                                          config.width, config.proj_bias));
  if (config.names == AttentionNames::kTorch &&
      !UninitialisedWeights::in_scope()) {
    torch::nn::init::zeros_(out_->bias);
  }
}

void Attention::register_packed() {
  const Linear qkv = register_module(
      "qkv", Linear(config_.width, 3 * config_.width, config_.qkv_bias));
  qkv_weight_ = qkv->weight;
  qkv_bias_ = qkv->bias;
}

void Attention::register_in_proj() {
  const int64_t width = config_.width;
  qkv_weight_ =
      register_parameter("in_proj_weight", new_weight({3 * width, width}));
  qkv_bias_ = register_parameter("in_proj_bias", new_weight({3 * width}));
  if (UninitialisedWeights::in_scope()) return;
  torch::nn::init::xavier_uniform_(qkv_weight_);
  torch::nn::init::zeros_(qkv_bias_);
}

void Attention::register_separate() {
  const int64_t num_kv_heads = config_.num_kv_heads.value_or(config_.num_heads);
  const auto add = [&](const char* name, int64_t num_heads) {
    return register_module(
        name, Linear(config_.width, num_heads * head_size_, config_.qkv_bias));
  };
  q_proj_ = add("q_proj", config_.num_heads);
  k_proj_ = add("k_proj", num_kv_heads);
  v_proj_ = add("v_proj", num_kv_heads);
}

void Attention::register_norms() {
  switch (config_.qk_norm) {
    case QkNorm::kNone: return;
    case QkNorm::kRms:
      q_rms_norm_ =
          register_module("q_norm", RmsNorm(RmsNormConfig{head_size_}));
      k_rms_norm_ =
          register_module("k_norm", RmsNorm(RmsNormConfig{head_size_}));
      return;
    case QkNorm::kLayer:
      q_layer_norm_ = register_module("q_norm", LayerNorm(head_size_));
      k_layer_norm_ = register_module("k_norm", LayerNorm(head_size_));
      return;
  }
}

at::Tensor Attention::forward(const at::Tensor& x,
                              const AttentionInput& input) {
  return project_out(attend(x, input));
}

kernels::ResidualBranch Attention::forward_to_residual(
    const at::Tensor& x, const AttentionInput& input) {
  const at::Tensor mixed = attend(x, input);
  if (config_.proj_dropout != 0) return {.out = project_out(mixed)};
  return out_->forward_to_residual(mixed);
}

at::Tensor Attention::cross_attend(const at::Tensor& x,
                                   const at::Tensor& context,
                                   const std::optional<at::Tensor>& mask) {
  const int64_t width = config_.width;
  const at::Tensor q = at::linear(x, qkv_weight_.slice(0, 0, width),
                                  qkv_bias_.slice(0, 0, width));
  const at::Tensor kv = at::linear(context, qkv_weight_.slice(0, width),
                                   qkv_bias_.slice(0, width))
                            .unflatten(-1, {2, config_.num_heads, head_size_});
  return project_out(
      mix({.queries = q.unflatten(-1, {config_.num_heads, head_size_}),
           .keys = kv.select(2, 0),
           .values = kv.select(2, 1)},
          {.mask = mask}));
}

Attention::Heads Attention::project(const at::Tensor& x) {
  if (!q_proj_.is_empty()) {
    const auto in_heads = [&](const at::Tensor& y) {
      return y.unflatten(-1, {-1, head_size_});
    };
    return {.queries = in_heads(q_proj_->forward(x)),
            .keys = in_heads(k_proj_->forward(x)),
            .values = in_heads(v_proj_->forward(x))};
  }
  kernels::LinearResult packed =
      kernels::linear_leaving_bias(x, qkv_weight_, qkv_bias_);
  packed.out = packed.out.unflatten(-1, {3, config_.num_heads, head_size_});
  return {.packed = std::move(packed)};
}

at::Tensor Attention::attend(const at::Tensor& x, const AttentionInput& input) {
  Heads heads = project(x);
  const bool is_as_projected =
      config_.qk_norm == QkNorm::kNone && input.rope == nullptr;
  if (heads.packed.out.defined() && is_as_projected && is_plain(input)) {
    return kernels::attention(heads.packed).flatten(2);
  }
  norm_and_rotate(heads, input.rope);
  return mix(heads, input);
}

bool Attention::is_plain(const AttentionInput& input) const {
  return !input.mask && !input.is_causal &&
         (config_.attn_dropout == 0 || !is_training());
}

void Attention::norm_and_rotate(Heads& heads, const kernels::RopeTable* rope) {
  if (config_.qk_norm == QkNorm::kRms) return rms_norm_and_rotate(heads, rope);
  if (config_.qk_norm == QkNorm::kLayer) {
    const at::Tensor packed = kernels::with_bias_gradient(heads.packed);
    const at::Tensor values = packed.select(2, 2);
    const kernels::QueriesAndKeys rotated = kernels::qk_norm_rope(
        packed,
        {.queries = q_layer_norm_->norm(), .keys = k_layer_norm_->norm()},
        *rope);
    heads = {
        .queries = rotated.queries, .keys = rotated.keys, .values = values};
    return;
  }
  if (heads.packed.out.defined()) {
    heads = heads_of(kernels::qkv_heads(heads.packed));
  }
  if (rope != nullptr) {
    heads.queries = kernels::apply_rope(heads.queries, *rope);
    heads.keys = kernels::apply_rope(heads.keys, *rope);
  }
}

void Attention::rms_norm_and_rotate(Heads& heads,
                                    const kernels::RopeTable* rope) {
  if (rope != nullptr) {
    heads =
        heads_of(kernels::qk_rms_rope(heads.packed,
                                      {.queries = q_rms_norm_->norm().weight,
                                       .keys = k_rms_norm_->norm().weight,
                                       .eps = q_rms_norm_->norm().eps},
                                      *rope));
    return;
  }
  heads = heads_of(kernels::qkv_heads(heads.packed));
  heads.queries = q_rms_norm_->forward(heads.queries);
  heads.keys = k_rms_norm_->forward(heads.keys);
}

at::Tensor Attention::mix(const Heads& heads, const AttentionInput& input) {
  const bool is_grouped = heads.keys.size(2) != heads.queries.size(2);
  if (is_plain(input) && !is_grouped) {
    return kernels::attention({.queries = heads.queries,
                               .keys = heads.keys,
                               .values = heads.values})
        .flatten(2);
  }
  const at::Tensor mixed = at::scaled_dot_product_attention(
      all_heads(heads.queries), all_heads(heads.keys), all_heads(heads.values),
      input.mask, is_training() ? config_.attn_dropout : 0, input.is_causal);
  return mixed.transpose(1, 2).flatten(2);
}

at::Tensor Attention::project_out(const at::Tensor& mixed) {
  const at::Tensor out = out_->forward(mixed);
  if (config_.proj_dropout == 0) return out;
  return at::dropout(out, config_.proj_dropout, is_training());
}

// [B, N, heads or kv heads, size] -> [B, heads, N, size]
at::Tensor Attention::all_heads(const at::Tensor& x) const {
  const int64_t group = config_.num_heads / x.size(2);
  const at::Tensor by_head = x.transpose(1, 2);
  if (group == 1) return by_head;
  return by_head.unsqueeze(2).expand({-1, -1, group, -1, -1}).flatten(1, 2);
}

}  // namespace lockstep::nn

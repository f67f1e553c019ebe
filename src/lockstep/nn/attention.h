// Multi-head attention.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "lockstep/kernels/qkv_heads.h"
#include "lockstep/kernels/rope.h"
#include "lockstep/nn/linear.h"
#include "lockstep/nn/norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

// Names of the parameters in checkpoints, in the order of registration.
enum class AttentionNames {
  kTimm,   // qkv, q_norm, k_norm, proj
  kJit,    // q_norm, k_norm, qkv, proj
  kTorch,  // in_proj_weight, in_proj_bias, out_proj: nn.MultiheadAttention
  kLlama,  // q_proj, k_proj, v_proj, o_proj
};

// Normalisation of queries and keys, per head.
enum class QkNorm {
  kNone,
  kRms,
  // LayerNorm, followed by rope: on a GPU in one kernel (qk_norm_rope). For
  // packed projections only.
  kLayer,
};

struct AttentionConfig {
  int64_t width = 384;
  int64_t num_heads = 6;
  // Unset: num_heads. Fewer: grouped-query attention. For
  // AttentionNames::kLlama only.
  std::optional<int64_t> num_kv_heads = {};
  std::optional<int64_t> head_size = {};  // Unset: width / num_heads.
  AttentionNames names = AttentionNames::kTimm;
  Bias qkv_bias = Bias::kYes;
  Bias proj_bias = Bias::kYes;
  QkNorm qk_norm = QkNorm::kNone;
  double attn_dropout = 0;  // Dropout of attention weights.
  double proj_dropout = 0;  // Dropout of the output.
};

struct AttentionInput {
  const kernels::RopeTable* rope = nullptr;
  // bool, true where a key is attended to, or float, added to the scores;
  // broadcast to [B, heads, N, keys].
  std::optional<at::Tensor> mask = {};
  bool is_causal = false;
};

class Attention : public torch::nn::Module {
 public:
  explicit Attention(const AttentionConfig& config);

  // Self-attention, [B, N, width] -> the same. With a rope of P positions N is
  // a multiple of P: positions repeat.
  at::Tensor forward(const at::Tensor& x, const AttentionInput& input = {});

  // See LinearImpl.
  kernels::ResidualBranch forward_to_residual(const at::Tensor& x,
                                              const AttentionInput& input);

  // Queries from x [B, N, width], keys and values from context [B, M, width].
  // For packed projections without norm and rope.
  at::Tensor cross_attend(const at::Tensor& x, const at::Tensor& context,
                          const std::optional<at::Tensor>& mask);

 private:
  struct Heads;

  void register_packed();
  void register_in_proj();
  void register_separate();
  void register_norms();

  static Heads heads_of(const kernels::QueriesKeysValues& heads);
  Heads project(const at::Tensor& x);
  void norm_and_rotate(Heads& heads, const kernels::RopeTable* rope);
  void rms_norm_and_rotate(Heads& heads, const kernels::RopeTable* rope);
  at::Tensor attend(const at::Tensor& x, const AttentionInput& input);
  bool is_plain(const AttentionInput& input) const;
  at::Tensor project_out(const at::Tensor& mixed);
  at::Tensor mix(const Heads& heads, const AttentionInput& input);
  at::Tensor all_heads(const at::Tensor& x) const;

  AttentionConfig config_;
  int64_t head_size_;
  at::Tensor qkv_weight_;  // Packed: [3 * width, width].
  at::Tensor qkv_bias_;
  Linear q_proj_{nullptr};
  Linear k_proj_{nullptr};
  Linear v_proj_{nullptr};
  RmsNorm q_rms_norm_{nullptr};
  RmsNorm k_rms_norm_{nullptr};
  LayerNorm q_layer_norm_{nullptr};
  LayerNorm k_layer_norm_{nullptr};
  Linear out_{nullptr};
};

}  // namespace lockstep::nn

#include "lockstep/fused.h"

#include "lockstep/error.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/adaln_residual.h"
#include "lockstep/kernels/attention.h"
#include "lockstep/kernels/linear.h"
#include "lockstep/kernels/qk_rms_rope.h"

namespace lockstep {
namespace {

kernels::ActivationKind kind_of(FusedActivation activation) {
  switch (activation) {
    case FusedActivation::kGelu: return kernels::ActivationKind::kGelu;
    case FusedActivation::kGeluTanh: return kernels::ActivationKind::kGeluTanh;
    case FusedActivation::kSilu: return kernels::ActivationKind::kSilu;
    case FusedActivation::kSwiGlu: break;
  }
  return kernels::ActivationKind::kSwiGlu;
}

}  // namespace

at::Tensor fused_linear(const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& bias) {
  return kernels::linear(x, weight, bias);
}

at::Tensor fused_linear_activation(const at::Tensor& x,
                                   const at::Tensor& weight,
                                   const at::Tensor& bias,
                                   FusedActivation activation) {
  return kernels::linear_activation(x, weight, bias, kind_of(activation));
}

FusedResidualNormResult fused_residual_norm(const at::Tensor& x,
                                            const FusedResidualNorm& with) {
  if (with.shift.defined() != with.scale.defined()) {
    throw ConfigError(
        "fused_residual_norm: shift and scale belong together; give both, or "
        "neither");
  }
  const auto kind =
      with.is_layer_norm ? kernels::NormKind::kLayer : kernels::NormKind::kRms;
  const kernels::AdaLnResult result = kernels::adaln_residual(
      x, {.out = with.branch, .bias = with.branch_bias, .gate = with.gate},
      {.kind = kind, .weight = with.weight, .bias = with.bias, .eps = with.eps},
      {.shift = with.shift, .scale = with.scale});
  return {.sum = result.sum, .normed = result.normed};
}

FusedHeads fused_qk_rms_rope(const at::Tensor& qkv,
                             const at::Tensor& query_weight,
                             const at::Tensor& key_weight,
                             const at::Tensor& rope, double eps) {
  const kernels::QueriesKeysValues heads = kernels::qk_rms_rope(
      {.out = qkv}, {.queries = query_weight, .keys = key_weight, .eps = eps},
      {.pairs = kernels::RopePairs::kInterleaved, .complex = rope});
  return {.queries = heads.queries, .keys = heads.keys, .values = heads.values};
}

at::Tensor fused_attention(const at::Tensor& qkv) {
  if (qkv.dim() != 5 || qkv.size(2) != 3) {
    throw ConfigError(
        "fused_attention: qkv is [batch, tokens, 3, heads, size], as a packed "
        "projection leaves it");
  }
  return kernels::attention(kernels::LinearResult{.out = qkv});
}

}  // namespace lockstep

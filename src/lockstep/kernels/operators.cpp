// torch.ops.lockstep: the fused layers for Python.
//
// Each operator is a composition for the dispatcher: the functions bring their
// own autograd, and take meta and fake tensors through the ATen operations that
// the kernels replace.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <tuple>

#include "lockstep/error.h"
#include "lockstep/fused.h"
#include "lockstep/kernels/optional_tensor.h"

namespace lockstep::kernels {
namespace {

at::Tensor or_undefined(const OptionalTensor& tensor) {
  return tensor.value_or(at::Tensor());
}

FusedActivation activation_of(std::string_view name) {
  if (name == "gelu") return FusedActivation::kGelu;
  if (name == "gelu_tanh") return FusedActivation::kGeluTanh;
  if (name == "silu") return FusedActivation::kSilu;
  if (name == "swiglu") return FusedActivation::kSwiGlu;
  throw ConfigError("activation '" + std::string(name) +
                    "': gelu, gelu_tanh, silu or swiglu");
}

at::Tensor linear_activation_operator(const at::Tensor& x,
                                      const at::Tensor& weight,
                                      const OptionalTensor& bias,
                                      std::string_view activation) {
  return fused_linear_activation(x, weight, or_undefined(bias),
                                 activation_of(activation));
}

std::tuple<at::Tensor, at::Tensor> residual_norm_operator(
    const at::Tensor& x, const OptionalTensor& branch,
    const OptionalTensor& branch_bias, const OptionalTensor& gate,
    const OptionalTensor& weight, const OptionalTensor& bias,
    const OptionalTensor& shift, const OptionalTensor& scale, double eps,
    bool is_layer_norm) {
  const FusedResidualNormResult result =
      fused_residual_norm(x, {.branch = or_undefined(branch),
                              .branch_bias = or_undefined(branch_bias),
                              .gate = or_undefined(gate),
                              .is_layer_norm = is_layer_norm,
                              .weight = or_undefined(weight),
                              .bias = or_undefined(bias),
                              .eps = eps,
                              .shift = or_undefined(shift),
                              .scale = or_undefined(scale)});
  return {result.sum, result.normed};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> qk_rms_rope_operator(
    const at::Tensor& qkv, const at::Tensor& query_weight,
    const at::Tensor& key_weight, const at::Tensor& rope, double eps) {
  const FusedHeads heads =
      fused_qk_rms_rope(qkv, query_weight, key_weight, rope, eps);
  return {heads.queries, heads.keys, heads.values};
}

TORCH_LIBRARY(lockstep, library) {
  library.def(
      "linear_activation(Tensor x, Tensor weight, Tensor? bias, str "
      "activation) -> Tensor",
      linear_activation_operator);
  library.def(
      "residual_norm(Tensor x, Tensor? branch=None, Tensor? branch_bias=None, "
      "Tensor? gate=None, Tensor? weight=None, Tensor? bias=None, Tensor? "
      "shift=None, Tensor? scale=None, float eps=1e-06, bool "
      "layer_norm=False) -> (Tensor sum, Tensor normed)",
      residual_norm_operator);
  library.def(
      "qk_rms_rope(Tensor qkv, Tensor query_weight, Tensor key_weight, Tensor "
      "rope, float eps=1e-06) -> (Tensor queries, Tensor keys, Tensor values)",
      qk_rms_rope_operator);
  library.def("attention(Tensor qkv) -> Tensor", fused_attention);
}

}  // namespace
}  // namespace lockstep::kernels

// Layers of transformers as fused kernels: on a GPU one kernel forward and one
// backward, with sums in a fixed order; on the CPU, and for types and sizes
// that the kernels do not take, the ATen operations that they replace.
// From Python they are torch.ops.lockstep.*, once liblockstep.so is loaded with
// torch.ops.load_library().
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/export.h"

namespace lockstep {

enum class FusedActivation {
  kGelu,
  kGeluTanh,
  kSilu,
  kSwiGlu,  // silu(a) * b of a layer that computes a, then b: half as wide.
};

// x * weight^T + bias, of which the bias may be undefined. Within a StepGraph
// with mixed precision no weight is cast: the optimizer keeps copies.
LOCKSTEP_EXPORT at::Tensor fused_linear(const at::Tensor& x,
                                        const at::Tensor& weight,
                                        const at::Tensor& bias = {});

// The activation of fused_linear().
LOCKSTEP_EXPORT at::Tensor fused_linear_activation(const at::Tensor& x,
                                                   const at::Tensor& weight,
                                                   const at::Tensor& bias,
                                                   FusedActivation activation);

// Undefined tensors are left out.
struct FusedResidualNorm {
  at::Tensor branch = {};       // [B, N, D]: added to x.
  at::Tensor branch_bias = {};  // [D]: added to the branch.
  at::Tensor gate = {};         // [B, D]: multiplies the branch.
  bool is_layer_norm = false;   // Else RMS norm.
  at::Tensor weight = {};       // [D]
  at::Tensor bias = {};         // [D]; LayerNorm only.
  double eps = 1e-6;
  at::Tensor shift = {};  // [B, D], with scale: adaLN.
  at::Tensor scale = {};
};

struct FusedResidualNormResult {
  at::Tensor sum = {};     // x + gate * (branch + branch_bias)
  at::Tensor normed = {};  // norm(sum) * (1 + scale) + shift
};

// x [B, N, D] in float32: the residual stream.
LOCKSTEP_EXPORT FusedResidualNormResult
fused_residual_norm(const at::Tensor& x, const FusedResidualNorm& with);

// [B, N, heads, size] each.
struct FusedHeads {
  at::Tensor queries = {};
  at::Tensor keys = {};
  at::Tensor values = {};
};

// RMS norm of each head of queries and keys, then rope. qkv [B, N, 3, heads,
// size]; weights [size]; rope: cos + i sin of neighbouring channels, complex
// [N, 1, size / 2].
LOCKSTEP_EXPORT FusedHeads fused_qk_rms_rope(const at::Tensor& qkv,
                                             const at::Tensor& query_weight,
                                             const at::Tensor& key_weight,
                                             const at::Tensor& rope,
                                             double eps = 1e-6);

// softmax(q k^T / sqrt(size)) v of a packed projection [B, N, 3, heads, size]:
// [B, N, heads, size]. A kernel of Lockstep's for up to 320 tokens, heads of 64
// channels and half precision on GPUs of compute capability 9.0; else
// scaled_dot_product_attention().
LOCKSTEP_EXPORT at::Tensor fused_attention(const at::Tensor& qkv);

}  // namespace lockstep

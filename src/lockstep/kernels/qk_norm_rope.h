// QK-norm and rotary position embedding in one kernel.
#pragma once

#include "lockstep/kernels/rope.h"
#include "lockstep/kernels/token_norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

struct QueriesAndKeys {
  at::Tensor queries = {};
  at::Tensor keys = {};
};

struct QkNorms {
  TokenNorm queries = {};
  TokenNorm keys = {};
};

// LayerNorm of each head of queries and keys, then rope (kAxialHalves). qkv
// [B, N, 3, heads, size], contiguous; N is a multiple of the table's P
// positions, which repeat. Each result is [B, N, heads, size], computed in the
// table's type and returned in that of qkv. On a GPU one kernel overwrites qkv
// when no gradient is needed.
QueriesAndKeys qk_norm_rope(const at::Tensor& qkv, const QkNorms& norms,
                            const RopeTable& table);

}  // namespace lockstep::kernels

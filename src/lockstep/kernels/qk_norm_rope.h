// Queries and keys of attention, normalised and turned by where their tokens
// lie.
#pragma once

#include "lockstep/kernels/token_norm.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep {

// Channel i of the first quarter of a head is mixed with channel i of the
// second one, those of the third with those of the fourth.
struct RopeTable {
  at::Tensor cosines = {};  // [P, 1, size]
  at::Tensor sines = {};    // [P, 1, size], minus those in quarters 1 and 3.
};

// x [..., P, heads, size] turned.
at::Tensor turn_heads(const at::Tensor& x, const RopeTable& rotations);

struct QueriesAndKeys {
  at::Tensor queries = {};
  at::Tensor keys = {};
};

struct HeadNorms {
  TokenNorm of_queries = {};
  TokenNorm of_keys = {};
};

// Of qkv [B, N, 3, heads, size], contiguous; N is a multiple of P, places
// repeat. Each is [B, N, heads, size]. Computed in the type of the rotations,
// answered in that of qkv: on a GPU in one pass and in the memory of qkv, when
// no gradient is asked for.
QueriesAndKeys qk_norm_rope(const at::Tensor& qkv, const HeadNorms& norms,
                            const RopeTable& rotations);

}  // namespace lockstep

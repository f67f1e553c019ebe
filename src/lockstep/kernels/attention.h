// Attention without masks, by the kernel that is fastest for its tokens.
#pragma once

#include "lockstep/kernels/qkv_heads.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

// softmax(queries keys^T / sqrt(size)) values, [B, N, heads, size]; keys and
// values may have other tokens. Scores are summed in float32 in half precision,
// too.
at::Tensor attention(const QueriesKeysValues& heads);

// The same for a packed projection [B, N, 3, heads, size].
at::Tensor attention(const LinearResult& qkv);

}  // namespace lockstep::kernels

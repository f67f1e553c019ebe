// Attention over few tokens in kernels of our own, with gradients.
#pragma once

#include "lockstep/kernels/qkv_heads.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

// softmax(queries keys^T / sqrt(size)) values, [B, N, heads, size], on a GPU of
// compute capability 9.0, for heads of 64 channels in half precision and at
// most 320 tokens. Gradients are the same bits each time.
bool has_short_attention(const QueriesKeysValues& heads);
at::Tensor short_attention(const QueriesKeysValues& heads);

// The same for a packed projection [B, N, 3, heads, size], whose gradient is
// packed and whose bias' gradient is summed on the way.
bool has_short_attention(const LinearResult& qkv);
at::Tensor short_attention(const LinearResult& qkv);

}  // namespace lockstep::kernels

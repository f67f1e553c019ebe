// QK RMS norm and rotary position embedding in one kernel, with gradients.
#pragma once

#include "lockstep/kernels/qkv_heads.h"
#include "lockstep/kernels/rope.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

struct QkRmsNorms {
  at::Tensor queries = {};  // Weights, [size].
  at::Tensor keys = {};
  double eps = 1e-6;
};

// RMS norm of each head of queries and keys, then rope. qkv [B, N, 3, heads,
// size]; table: kInterleaved, of N positions. On a GPU one kernel each way;
// results then have the type of qkv, and backward packs the gradients of all
// three and sums that of the bias.
QueriesKeysValues qk_rms_rope(const LinearResult& qkv, const QkRmsNorms& norms,
                              const RopeTable& table);

}  // namespace lockstep::kernels

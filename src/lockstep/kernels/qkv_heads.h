// Queries, keys and values of one packed projection.
#pragma once

#include "lockstep/kernels/linear.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

// [B, N, heads, size] each.
struct QueriesKeysValues {
  at::Tensor queries = {};
  at::Tensor keys = {};
  at::Tensor values = {};
};

// Views of a projection's result [B, N, 3, heads, size]. On a GPU one kernel
// packs their gradients and sums that of the bias on the way.
QueriesKeysValues qkv_heads(const LinearResult& qkv);

}  // namespace lockstep::kernels

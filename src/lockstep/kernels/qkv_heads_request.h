// Arguments that qkv_heads.cpp passes to qkv_heads.cu. No torch header: both
// sides include it.
#pragma once

#include <cstdint>

#include "lockstep/kernels/element_type.h"
#include "lockstep/kernels/head_strides.h"

namespace lockstep::kernels {

// T: the type `type`.
struct QkvGradientRequest {
  const void* d_heads[3] = {};  // T: of queries, keys and values.
  HeadStrides strides[3] = {};
  void* d_qkv = nullptr;          // T [samples, tokens, 3, heads, size]
  float* d_bias = nullptr;        // [3, heads, size]
  float* partial_sums = nullptr;  // [qkv_gradient_blocks(rows), 3, heads, size]
  int64_t num_samples = 0;
  int64_t num_tokens = 0;
  int num_heads = 0;
  int size = 0;  // A multiple of 8.
  ElementType type = ElementType::kBfloat16;
};

// Blocks over the rows = samples * tokens, each of which leaves its sums.
constexpr int64_t qkv_gradient_blocks(int64_t rows) {
  return rows < 16 * 192 ? (rows + 15) / 16 : 192;
}

}  // namespace lockstep::kernels

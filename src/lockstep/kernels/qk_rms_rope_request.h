// Arguments that qk_rms_rope.cpp passes to qk_rms_rope.cu. No torch header:
// both sides include it.
#pragma once

#include <cstdint>

#include "lockstep/kernels/element_type.h"
#include "lockstep/kernels/head_strides.h"

namespace lockstep::kernels {

constexpr int kQkRmsChannelsPerThread = 8;

// Channels of a head: threads of a warp share it.
constexpr bool has_qk_rms_rope(int64_t size) {
  return size == 32 || size == 64 || size == 128 || size == 256;
}

// For queries and for keys. T: the type `type`.
struct QkRmsArguments {
  const void* qkv = nullptr;    // T [samples, tokens, 3, heads, size]
  const float* weight[2] = {};  // [size]
  float eps[2] = {};
  const float* rope = nullptr;  // [tokens, size / 2, 2]: cos, sin
  int64_t num_samples = 0;
  int64_t num_tokens = 0;
  int num_heads = 0;
  int size = 0;
  ElementType type = ElementType::kBfloat16;
};

struct QkRmsRopeRequest {
  QkRmsArguments arguments = {};
  void* out[2] = {};      // T [samples, tokens, heads, size]
  float* rstd = nullptr;  // [samples, tokens, 2, heads]
};

struct QkRmsRopeBackwardRequest {
  QkRmsArguments arguments = {};
  const float* rstd = nullptr;
  const void* d_out[3] = {};  // T: of queries, keys and values.
  HeadStrides strides[3] = {};
  void* d_qkv = nullptr;               // T, as qkv.
  float* d_weight[2] = {};             // [size]
  float* partial_sums = nullptr;       // [2, qk_rms_blocks(), size]
  float* d_bias = nullptr;             // [3, heads, size]; null: none.
  float* partial_bias_sums = nullptr;  // [qk_rms_blocks(), 3, heads, size]
};

// Blocks of the backward kernel, each of which leaves its sums. A multiple of
// the heads, so that a thread keeps its head.
constexpr int64_t qk_rms_blocks(int64_t num_tokens_of_all, int64_t num_heads) {
  const int64_t rows = num_tokens_of_all * num_heads;
  const int64_t blocks = rows < 1024 * 64 ? (rows + 63) / 64 : 1024;
  return (blocks + num_heads - 1) / num_heads * num_heads;
}

}  // namespace lockstep::kernels

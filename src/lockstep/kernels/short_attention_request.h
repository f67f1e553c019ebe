// Arguments that short_attention.cpp passes to short_attention.cu. No torch
// header: both sides include it.
#pragma once

#include <cstdint>

#include "lockstep/kernels/element_type.h"
#include "lockstep/kernels/head_strides.h"

namespace lockstep::kernels {

// Channels of a head.
constexpr int kShortAttentionSize = 64;
// Keys and values of a head lie in the shared memory of one block.
constexpr int kShortAttentionTokens = 320;

// T: the type `type`, half precision.
struct ShortAttentionRequest {
  const void* heads[3] = {};  // T: queries, keys and values.
  HeadStrides strides[3] = {};
  void* out = nullptr;        // T [samples, tokens, heads, size]
  float* log_sums = nullptr;  // [samples, heads, tokens], to the base 2.
  int64_t num_samples = 0;
  int num_tokens = 0;
  int num_heads = 0;
  ElementType type = ElementType::kBfloat16;
};

struct ShortAttentionBackwardRequest {
  ShortAttentionRequest forward = {};
  const void* d_out = nullptr;  // T
  HeadStrides d_out_strides = {};
  float* dots = nullptr;  // [samples, heads, tokens]: of out and d_out.
  void* d_heads[3] = {};  // T
  HeadStrides d_strides[3] = {};
  float* d_bias = nullptr;        // [3, heads, size]; null: none.
  float* partial_sums = nullptr;  // [samples, 3, heads, size]
};

}  // namespace lockstep::kernels

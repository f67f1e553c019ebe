// Arguments that qk_norm_rope.cpp passes to qk_norm_rope.cu. No torch header:
// both sides include it.
#pragma once

#include <cstdint>

#include "lockstep/kernels/token_norm_request.h"

namespace lockstep::kernels {

constexpr int64_t kMaxRopeHeadSize = 128;

struct QkNormRopeRequest {
  void* qkv = nullptr;  // [tokens, 3, heads, size]
  // For queries and for keys, [size] each.
  const void* weight[2] = {};
  const void* bias[2] = {};
  float eps[2] = {};
  const float* cos = nullptr;  // [positions, size]
  const float* sin = nullptr;
  int64_t num_tokens = 0;
  int64_t num_positions = 0;
  int num_heads = 0;
  int size = 0;  // A multiple of 4, at most kMaxRopeHeadSize.
  HalfType type = HalfType::kBfloat16;  // qkv, weights, biases.
};

}  // namespace lockstep::kernels

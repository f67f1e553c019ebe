// Arguments that token_norm.cpp passes to token_norm.cu. No torch header: both
// sides include it.
#pragma once

#include <cstdint>

namespace lockstep::kernels {

enum class HalfType : int { kFloat16, kBfloat16 };

struct TokenNormRequest {
  const float* x = nullptr;  // [rows, size]
  const void* weight = nullptr;
  const void* bias = nullptr;
  void* out = nullptr;  // [rows, size]
  int64_t num_rows = 0;
  int64_t size = 0;  // A multiple of 4.
  float eps = 0;
  HalfType type = HalfType::kBfloat16;  // All except x.
};

}  // namespace lockstep::kernels

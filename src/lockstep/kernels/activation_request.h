// Arguments that activation.cpp passes to activation.cu. No torch header: both
// sides include it.
#pragma once

#include <cstdint>

#include "lockstep/kernels/element_type.h"

namespace lockstep::kernels {

enum class ActivationKind : int {
  kGelu,
  kGeluTanh,
  kSilu,
  kSwiGlu,  // silu(a) * b; a row of the input holds a, then b.
};

// T: the type `type`.
struct ActivationRequest {
  const void* input = nullptr;  // T [rows, size], kSwiGlu: [rows, 2 * size]
  const float* bias = nullptr;  // One per column of the input; null: none.
  void* out = nullptr;          // T [rows, size]; null in backward.
  // Backward only:
  const void* d_out = nullptr;    // T [rows, size]
  void* d_input = nullptr;        // T, as input.
  float* d_bias = nullptr;        // As bias; null: none.
  float* partial_sums = nullptr;  // [activation_blocks(rows), columns]
  int64_t rows = 0;
  int64_t size = 0;  // A multiple of 8.
  ActivationKind kind = ActivationKind::kGeluTanh;
  ElementType type = ElementType::kBfloat16;
};

// Blocks over the rows in backward, each of which leaves its sums.
constexpr int64_t activation_blocks(int64_t rows) {
  return rows < 16 * 176 ? (rows + 15) / 16 : 176;
}

}  // namespace lockstep::kernels

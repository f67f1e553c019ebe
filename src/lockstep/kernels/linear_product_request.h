// Arguments that linear_product.cpp passes to linear_product_cuda.cpp. No torch
// header: both sides include it.
#pragma once

#include <array>
#include <cstdint>

#include "lockstep/kernels/element_type.h"

namespace lockstep::kernels {

// The three matrix products of a linear layer with a weight [out, in].
enum class LinearProductKind : int {
  kForward,         // x [rows, in] -> [rows, out]
  kInputGradient,   // d_out [rows, out] -> [rows, in]
  kWeightGradient,  // d_out [rows, out], x [rows, in] -> [out, in] in float32
};

// What decides which algorithms there are.
struct LinearProductShape {
  LinearProductKind kind = LinearProductKind::kForward;
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  bool has_bias = false;  // kForward only.
  ElementType type = ElementType::kBfloat16;

  bool operator==(const LinearProductShape&) const = default;
};

// A cublasLtMatmulAlgo_t.
struct ProductAlgorithm {
  std::array<uint64_t, 8> words = {};

  bool operator==(const ProductAlgorithm&) const = default;
};

// T: the shape's type. All pointers are aligned to kProductAlignment.
struct LinearProductRequest {
  LinearProductShape shape = {};
  const void* rows = nullptr;    // T: x, or d_out.
  const void* factor = nullptr;  // T: the weight, or x of kWeightGradient.
  const void* bias = nullptr;    // T [out]
  void* result = nullptr;
  void* workspace = nullptr;  // kProductWorkspaceBytes
};

constexpr int64_t kProductAlignment = 256;
constexpr int64_t kProductWorkspaceBytes = int64_t{32} << 20;
constexpr int kMaxProductAlgorithms = 16;

}  // namespace lockstep::kernels

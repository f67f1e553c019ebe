// Arguments that adaln_residual.cpp passes to its CUDA sources. No torch
// header: both sides include it.
#pragma once

#include <cstdint>

#include "lockstep/kernels/element_type.h"

namespace lockstep::kernels {

constexpr int64_t kMaxAdaLnWidth = 3072;
constexpr int kAdaLnSums = 4;

enum class NormKind : int { kRms, kLayer };

// One row per sample, [batch, size]; rows may lie apart. Null: none.
struct SampleRows {
  const void* data = nullptr;
  int64_t stride = 0;
};

// What forward and backward share. T: the type `type`.
struct AdaLnArguments {
  const void* branch = nullptr;        // T [batch, count, size]; null: none
  const float* branch_bias = nullptr;  // [size]; null: none
  SampleRows gate = {};                // T; null: 1
  SampleRows shift = {};               // T; null together with scale: none
  SampleRows scale = {};               // T
  const float* weight = nullptr;       // [size], or one number; null: 1
  const float* bias = nullptr;         // [size]; null: none
  bool has_scalar_weight = false;
  int64_t batch = 0;
  int64_t count = 0;
  int64_t size = 0;  // A multiple of 4, at most kMaxAdaLnWidth.
  float eps = 0;
  NormKind kind = NormKind::kRms;
  ElementType type = ElementType::kBfloat16;
};

struct AdaLnForwardRequest {
  AdaLnArguments arguments = {};
  const float* x = nullptr;  // [batch, count, size]
  float* sum = nullptr;      // As x; null without a branch.
  void* normed = nullptr;    // T, as x.
  float* mean = nullptr;     // [batch, count]; null for NormKind::kRms.
  float* rstd = nullptr;     // [batch, count]
};

// Results may be null, except d_x, and d_branch when there is a branch.
struct AdaLnBackwardRequest {
  AdaLnArguments arguments = {};
  const float* d_sum = nullptr;    // Null: zeros.
  const void* d_normed = nullptr;  // T
  const float* sum = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  float* d_x = nullptr;
  void* d_branch = nullptr;  // T
  // [batch, adaln_blocks(count), kAdaLnSums, size]
  float* partial_sums = nullptr;
  void* d_gate = nullptr;          // T [batch, size]
  void* d_shift = nullptr;         // T [batch, size]
  void* d_scale = nullptr;         // T [batch, size]
  float* d_weight = nullptr;       // [size]
  float* d_bias = nullptr;         // [size]
  float* d_branch_bias = nullptr;  // [size]
};

// Blocks per sample of the backward kernel, each of which leaves its sums.
constexpr int64_t adaln_blocks(int64_t count) { return (count + 47) / 48; }

}  // namespace lockstep::kernels

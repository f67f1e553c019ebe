// Angles of rotary position embedding for tokens in a sequence or on a grid.
#pragma once

#include <cstdint>

#include "lockstep/kernels/rope.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

struct GridRopeConfig {
  int64_t rows = 16;  // Patches.
  int64_t columns = 16;
  int64_t head_size = 64;      // A multiple of 4.
  int64_t num_context = 0;     // Tokens before the patches: not rotated.
  int64_t first_position = 0;  // Position of the first row and column.
  double theta = 10000;
  kernels::RopePairs pairs =
      kernels::RopePairs::kInterleaved;  // Or kAxialHalves.
};

// For num_context tokens and the patches row by row; in double, on the CPU. The
// first half of a head rotates by the row, the second by the column, pair i of
// h by position * theta^(-i / h). Throws ConfigError if head_size is not a
// multiple of 4.
kernels::RopeTable grid_rope_table(const GridRopeConfig& config);

// kHalves for positions 0 to count - 1: pair i rotates by
// position * frequencies[i], in their type. frequencies: [head_size / 2].
kernels::RopeTable sequence_rope_table(const at::Tensor& frequencies,
                                       int64_t count);

}  // namespace lockstep::nn

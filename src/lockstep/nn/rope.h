// Rotary position embedding: places turn queries and keys, so that their
// products depend on distances.
#pragma once

#include <cstdint>

#include "lockstep/tensor/tensor.h"

namespace lockstep {

struct GridRopeConfig {
  int64_t side = 16;       // Patches.
  int64_t head_size = 64;  // A multiple of 4.
  // Tokens before the patches that have no place: they are not turned.
  int64_t num_context = 0;
  double theta = 10000;
};

// One complex number of length 1 for each token and each pair of channels,
// complex double [num_context + side * side, head_size / 2], row by row: the
// first half turns by the row, the second by the column, pair i of h with speed
// theta^(-i / h). Throws ConfigError for a head_size that 4 does not divide.
at::Tensor grid_rotations(const GridRopeConfig& config);

// Turns the channels 0 and 1, 2 and 3, ...: x [..., head_size], rotations
// [..., head_size / 2], complex, of x's precision and on its device; the other
// dimensions are broadcast.
at::Tensor apply_rope(const at::Tensor& x, const at::Tensor& rotations);

}  // namespace lockstep

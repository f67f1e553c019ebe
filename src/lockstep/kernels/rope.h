// Rotary position embedding (arXiv 2104.09864): pairs of a head's channels are
// rotated by angles that depend on the token's position.
#pragma once

#include <c10/core/TensorOptions.h>

#include <cstdint>

#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

// Which channels form a pair.
enum class RopePairs {
  kInterleaved,  // 0 and 1, 2 and 3, ...
  kHalves,       // i and i + size / 2
  // i and i + size / 4 within each half of the head: rows rotate the first
  // half, columns the second.
  kAxialHalves,
};

// For positions 0 to P - 1.
struct RopeTable {
  RopePairs pairs = RopePairs::kHalves;
  at::Tensor cos = {};  // [P, 1, size]
  at::Tensor sin = {};  // [P, 1, size], negative for the first of each pair.
  // Only for kInterleaved, instead of the above: cos + i sin of each pair,
  // complex [P, 1, size / 2]. One product rotates, and autograd saves only the
  // table.
  at::Tensor complex = {};
};

// x [..., P, heads, size], rotated.
at::Tensor apply_rope(const at::Tensor& x, const RopeTable& table);

// Positions begin to end - 1.
RopeTable slice_positions(const RopeTable& table, int64_t begin, int64_t end);

// dtype: type of the tensors to rotate.
RopeTable moved_to(const RopeTable& table, const at::TensorOptions& options);

}  // namespace lockstep::kernels

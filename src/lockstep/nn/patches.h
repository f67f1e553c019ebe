// Images from patches.
#pragma once

#include <cstdint>

#include "lockstep/tensor/tensor.h"

namespace lockstep::nn {

struct PatchLayout {
  int64_t patch = 2;
  int64_t channels = 3;
};

// [B, side * side, patch * patch * C] -> [B, C, S, S]: patches row by row,
// values of a patch by row, column and then channel.
at::Tensor join_patches(const at::Tensor& patches, const PatchLayout& layout);

}  // namespace lockstep::nn

#include "lockstep/nn/patches.h"

#include <ATen/ATen.h>

#include <cmath>

namespace lockstep::nn {

at::Tensor join_patches(const at::Tensor& patches, const PatchLayout& layout) {
  const auto [patch, channels] = layout;
  const int64_t side =
      std::llround(std::sqrt(static_cast<double>(patches.size(1))));
  return patches.reshape({patches.size(0), side, side, patch, patch, channels})
      .permute({0, 5, 1, 3, 2, 4})
      .reshape({patches.size(0), channels, side * patch, side * patch});
}

}  // namespace lockstep::nn

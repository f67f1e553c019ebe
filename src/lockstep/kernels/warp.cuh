// Warp-level reductions.
#pragma once

namespace lockstep::kernels {

constexpr int kWarp = 32;

// Returns the sum to every thread of the warp; all must call it.
__device__ inline float sum_of_warp(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

}  // namespace lockstep::kernels

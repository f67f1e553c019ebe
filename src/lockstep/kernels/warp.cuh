// What the 32 threads of a warp do together.
#pragma once

namespace lockstep::kernels {

constexpr int kWarp = 32;

// Every thread of the warp gets the sum; all must call it.
__device__ inline float sum_of_warp(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

}  // namespace lockstep::kernels

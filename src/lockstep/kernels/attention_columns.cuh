// Sums of the columns of a head's gradients, in shared memory.
#pragma once

#include "lockstep/kernels/attention_rows.cuh"

namespace lockstep::kernels {

// Adds the columns of a warp's rows to what it has in shared memory. Threads of
// one column exchange halves of what they have until each has two sums.
__device__ inline void add_columns(float* columns, const Sums& sums, int first,
                                   int num_rows) {
  const int lane = lane_of_warp();
  const int row = first + row_of_thread();
  float totals[2 * kSizeTiles];
#pragma unroll
  for (int i = 0; i < 2 * kSizeTiles; ++i) {
    totals[i] = row < num_rows ? sums[i / 2][i % 2] : 0;
    if (row + 8 < num_rows) totals[i] += sums[i / 2][2 + i % 2];
  }
#pragma unroll
  for (int level = 0; level < 3; ++level) {
    const int half = kSizeTiles >> level;
    const int distance = 2 * half;
    const bool is_upper = (lane & distance) != 0;
#pragma unroll
    for (int i = 0; i < kSizeTiles; ++i) {
      if (i >= half) break;
      const float lower = totals[i];
      const float upper = totals[half + i];
      totals[i] =
          (is_upper ? upper : lower) +
          __shfl_xor_sync(0xffffffffu, is_upper ? lower : upper, distance);
    }
  }
  float* pair = columns +
                (lane / 16 * 4 + lane / 8 % 2 * 2 + lane / 4 % 2) * 8 +
                2 * (lane % 4);
  pair[0] += totals[0];
  pair[1] += totals[1];
}

// Shared memory for the columns of each warp.
__device__ inline void clear_columns(float* columns, int count) {
  for (int i = threadIdx.x; i < count; i += kThreadsOfGroup) columns[i] = 0;
}

// Adds the warps' columns in their order.
__device__ inline void store_columns(
    const ShortAttentionBackwardRequest& request, const float* columns,
    int which) {
  const int num_heads = request.forward.num_heads;
  const int sample = static_cast<int>(blockIdx.x) / num_heads;
  const int head = static_cast<int>(blockIdx.x) % num_heads;
  float* out = request.partial_sums +
               ((int64_t{sample} * 3 + which) * num_heads + head) * kSize;
  for (int i = threadIdx.x; i < kSize; i += kThreadsOfGroup) {
    float total = 0;
    for (int warp = 0; warp < kWarpsOfGroup; ++warp) {
      total += columns[warp * kSize + i];
    }
    out[i] = total;
  }
}

}  // namespace lockstep::kernels

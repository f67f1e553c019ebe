// Sums of columns over rows in a fixed order: each block leaves its sums, and a
// second kernel adds those of all blocks.
#pragma once

#include "lockstep/kernels/element.cuh"
#include "lockstep/kernels/vector.cuh"

namespace lockstep::kernels {

// 32 threads hold neighbouring packs of columns, 8 rows of threads walk the
// rows.
constexpr int kColumnThreads = 32;
constexpr int kRowThreads = 8;

// The block's sum over its rows of threads, in their order.
template <int kPack>
__device__ void store_column_sums(const float (&values)[kPack], int64_t column,
                                  bool is_column, float* out) {
  __shared__ float scratch[kRowThreads][kPack * kColumnThreads];
  __syncthreads();  // An earlier call reads scratch.
  store_pack(&scratch[threadIdx.y][kPack * threadIdx.x], values);
  __syncthreads();
  if (threadIdx.y != 0 || !is_column) return;
  float total[kPack] = {};
  for (int row = 0; row < kRowThreads; ++row) {
    for (int k = 0; k < kPack; ++k) {
      total[k] += scratch[row][kPack * threadIdx.x + k];
    }
  }
  store_pack(out + column, total);
}

static __global__ void finish_column_sums(const float* partial_sums, float* out,
                                          int64_t width, int num_blocks) {
  __shared__ float scratch[kRowThreads][kColumnThreads];
  const int64_t column = int64_t{blockIdx.x} * kColumnThreads + threadIdx.x;
  float total = 0;
  if (column < width) {
#pragma unroll 8
    for (int block = threadIdx.y; block < num_blocks; block += kRowThreads) {
      total += partial_sums[block * width + column];
    }
  }
  scratch[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  total = 0;
  for (const auto& row : scratch) total += row[threadIdx.x];
  out[column] = total;
}

// partial_sums: [num_blocks, width]
inline void add_column_sums(const float* partial_sums, float* out,
                            int64_t width, int64_t num_blocks,
                            cudaStream_t stream) {
  const auto blocks =
      static_cast<unsigned>((width + kColumnThreads - 1) / kColumnThreads);
  finish_column_sums<<<blocks, dim3(kColumnThreads, kRowThreads), 0, stream>>>(
      partial_sums, out, width, static_cast<int>(num_blocks));
  check_launch("finish_column_sums");
}

}  // namespace lockstep::kernels

// Rows of heads, in global memory, in shared memory, and across a group of
// warps.
#pragma once

#include "lockstep/kernels/head_strides.h"
#include "lockstep/kernels/short_attention_request.h"
#include "lockstep/kernels/warpgroup_product.cuh"

namespace lockstep::kernels {

constexpr int kSize = kShortAttentionSize;
constexpr int kChunk = 8;                   // Elements of 16 bytes.
constexpr int kRowChunks = kSize / kChunk;  // A head's.
constexpr unsigned kChunkBytes = 16;
constexpr unsigned kRowBytes = kRowChunks * kChunkBytes;
constexpr int kProducts = kSize / 16;  // Whose sum is over the channels.
constexpr int kSizeTiles = kSize / 8;
constexpr int kColumnsOfBlock = kWarpsOfGroup * kSize;

// A thread's part of a tile's rows, as the left side of products over the
// channels, and of sums over steps.
using Rows = uint32_t[kProducts][4];
using Sums = float[kSizeTiles][4];
// One of each of its two rows.
using RowValues = float[2];

__device__ inline int lane_of_warp() {
  return static_cast<int>(threadIdx.x % 32);
}

// The first of a thread's two rows in a tile; the other one is 8 below.
__device__ inline int row_of_thread() {
  return static_cast<int>(threadIdx.x / 32 * 16) + lane_of_warp() / 4;
}

// One head of a sample.
template <typename T>
struct Head {
  T* rows = nullptr;
  int64_t stride = 0;

  __device__ Head(T* tensor, const HeadStrides& strides, int sample, int head)
      : rows(tensor + sample * strides.sample + head * strides.head),
        stride(strides.token) {}
};

// Rows of a head in shared memory, as products take them.
template <typename T>
struct SharedRows {
  T* rows = nullptr;

  __device__ T* chunk(unsigned row, unsigned chunk) const {
    return rows + row * kSize + (chunk ^ (row % kRowChunks)) * kChunk;
  }
  __device__ uint64_t matrix() const { return matrix_at(shared_address(rows)); }
};

// Starts copies of num_rows rows; those up to num_padded become zeros.
template <typename T>
__device__ void copy_rows(const SharedRows<T>& to, const Head<const T>& from,
                          int num_rows, int num_padded) {
  const int count = num_padded * kRowChunks;
  for (unsigned i = threadIdx.x; i < count; i += kThreadsOfGroup) {
    const unsigned row = i / kRowChunks;
    const unsigned chunk = i % kRowChunks;
    const bool is_there = row < num_rows;
    copy_async(to.chunk(row, chunk),
               from.rows + (is_there ? row : 0) * from.stride + chunk * kChunk,
               is_there);
  }
}

// Rows after the last are zeros.
template <typename T>
__device__ void load_rows(Rows& to, const Head<const T>& from, int first,
                          int num_rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + row_of_thread() + 8 * half;
    const T* channels =
        from.rows + row * from.stride + 2 * (lane_of_warp() % 4);
#pragma unroll
    for (int k = 0; k < 2 * kProducts; ++k) {
      to[k / 2][half + 2 * (k % 2)] =
          row < num_rows
              ? *reinterpret_cast<const uint32_t*>(channels + kChunk * k)
              : 0;
    }
  }
}

// Neighbouring threads exchange halves, so that each stores 8 bytes.
template <typename T>
__device__ void store_rows(const Head<T>& to, int first, int num_rows,
                           const Sums& sums) {
  const int lane = lane_of_warp();
  const bool is_odd = lane % 2 == 1;
  const int column = is_odd ? 8 + 2 * (lane % 4 - 1) : 2 * (lane % 4);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + row_of_thread() + 8 * half;
    T* channels = to.rows + row * to.stride + column;
#pragma unroll
    for (int pair = 0; pair < kSizeTiles / 2; ++pair) {
      const float(&left)[4] = sums[2 * pair];
      const float(&right)[4] = sums[2 * pair + 1];
      const uint32_t a = pack_pair<T>(left[2 * half], left[2 * half + 1]);
      const uint32_t b = pack_pair<T>(right[2 * half], right[2 * half + 1]);
      const uint32_t other = __shfl_xor_sync(0xffffffffu, is_odd ? a : b, 1);
      if (row >= num_rows) continue;
      *reinterpret_cast<uint2*>(channels + 16 * pair) =
          is_odd ? make_uint2(other, b) : make_uint2(a, other);
    }
  }
}

__device__ inline void scale_sums(Sums& sums, float scale) {
#pragma unroll
  for (int i = 0; i < 4 * kSizeTiles; ++i) sums[i / 4][i % 4] *= scale;
}

__device__ inline float sum_of_row(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

}  // namespace lockstep::kernels

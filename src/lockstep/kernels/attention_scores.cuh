// Scores of a tile of rows for rows of shared memory, the sums that they weigh,
// and the launch of kernels that compute a head per block.
#pragma once

#include "lockstep/kernels/attention_rows.cuh"
#include "lockstep/kernels/element.cuh"

namespace lockstep::kernels {

// Scores are products of queries and keys by 1 / sqrt(kSize); exp() is computed
// as a power of 2.
constexpr float kScale = 0.125f;
constexpr float kScaleLog2 = kScale * 1.4426950408889634f;

// How a kernel, whose blocks are one group of warps, divides its work: rows of
// shared memory that a tile meets at once, and blocks of a multiprocessor.
template <int step, int blocks>
struct Plan {
  static constexpr int kStep = step;
  static constexpr int kStepTiles = step / 8;  // 8 columns each.
  static constexpr int kBlocks = blocks;
};

// A thread's part of the scores of a tile's rows for a step's rows.
template <class P>
using Scores = float[P::kStepTiles][4];
template <class P>
using Weights = uint32_t[P::kStep / 16][4];

template <class P>
__host__ __device__ constexpr int padded(int num_rows) {
  return (num_rows + P::kStep - 1) / P::kStep * P::kStep;
}

__device__ inline float infinity() { return __int_as_float(0x7f800000); }

// Starts scores = rows * (a step's rows of shared memory, transposed).
template <class P, typename T>
__device__ void start_scores(Scores<P>& scores, const Rows& rows,
                             uint64_t matrix) {
#pragma unroll
  for (unsigned i = 0; i < kProducts; ++i) {
    Product<T, RightSide::kColumns>::run(
        scores, rows[i], matrix + matrix_offset(2 * i * kChunkBytes), i > 0);
  }
}

// Starts sums += weights * (a step's rows of shared memory).
template <class P, typename T>
__device__ void start_weighted(Sums& sums, const Weights<P>& weights,
                               uint64_t matrix) {
#pragma unroll
  for (unsigned i = 0; i < P::kStep / 16; ++i) {
    Product<T, RightSide::kRows>::run(
        sums, weights[i], matrix + matrix_offset(16 * i * kRowBytes), true);
  }
}

// What a product leaves is what the next one takes on its left side.
template <class P, typename T>
__device__ void round_weights(Weights<P>& weights, const Scores<P>& scores) {
#pragma unroll
  for (int i = 0; i < P::kStepTiles; ++i) {
    const float(&pairs)[4] = scores[i];
    weights[i / 2][2 * (i % 2)] = pack_pair<T>(pairs[0], pairs[1]);
    weights[i / 2][2 * (i % 2) + 1] = pack_pair<T>(pairs[2], pairs[3]);
  }
}

// Columns that stand for no key.
template <class P>
__device__ void mask_columns(Scores<P>& scores, int num_columns) {
  const int column = 2 * (lane_of_warp() % 4);
#pragma unroll
  for (int i = 0; i < 4 * P::kStepTiles; ++i) {
    if (column + i / 4 * 8 + i % 2 >= num_columns) {
      scores[i / 4][i % 4] = -infinity();
    }
  }
}

// Which head a block computes.
struct Place {
  int sample = 0;
  int head = 0;

  __device__ explicit Place(int num_heads)
      : sample(static_cast<int>(blockIdx.x) / num_heads),
        head(static_cast<int>(blockIdx.x) % num_heads) {}
};

template <typename T>
__device__ Head<const T> input_head(const ShortAttentionRequest& request,
                                    const Place& place, int which) {
  return {static_cast<const T*>(request.heads[which]), request.strides[which],
          place.sample, place.head};
}

// The strides of `out`, which is packed.
__device__ inline HeadStrides out_strides(
    const ShortAttentionRequest& request) {
  const int64_t token = int64_t{request.num_heads} * kSize;
  return {.sample = request.num_tokens * token, .token = token, .head = kSize};
}

// Shared memory: rows of two tensors, and for each warp the columns of
// num_columns tensors.
template <class P>
int shared_bytes(int num_tokens, int num_columns) {
  return static_cast<int>(2 * padded<P>(num_tokens) * kRowBytes) +
         num_columns * kColumnsOfBlock * static_cast<int>(sizeof(float));
}

template <typename Request>
void launch_kernel(void (*kernel)(Request), const Request& request,
                   int num_heads, int bytes, cudaStream_t stream) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       bytes);
  kernel<<<num_heads, kThreadsOfGroup, bytes, stream>>>(request);
}

template <typename Function>
void with_half(ElementType type, Function function) {
  if (type == ElementType::kFloat16) {
    function(static_cast<__half*>(nullptr));
  } else {
    function(static_cast<__nv_bfloat16*>(nullptr));
  }
}

inline int heads_of_all(const ShortAttentionRequest& request) {
  return static_cast<int>(request.num_samples) * request.num_heads;
}

}  // namespace lockstep::kernels

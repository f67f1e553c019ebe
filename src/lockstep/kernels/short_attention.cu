// The CUDA side of short_attention.cpp; part of liblockstep_cuda. No torch
// header: this file compiles in seconds.
//
// A block computes one head of one sample: what all its rows need lies in its
// shared memory, and each warp owns a tile of rows, whose results it keeps in
// registers. Backward recomputes the scores twice, once by the owners of
// queries and once by the owners of keys: no warp waits for another, and sums
// have one order.
#include "lockstep/export.h"
#include "lockstep/kernels/column_sums.cuh"
#include "lockstep/kernels/short_attention_request.h"
#include "lockstep/kernels/tensor_core.cuh"

namespace {

using namespace lockstep::kernels;  // NOLINT: everything here is a kernel's.

constexpr int kSize = kShortAttentionSize;
constexpr int kChunk = 8;                   // Elements of 16 bytes.
constexpr int kRowChunks = kSize / kChunk;  // Of a head.
constexpr int kProducts = kSize / 16;       // Whose sum is over the channels.
constexpr int kStep = 16;                   // Rows of shared memory at once.
constexpr int kStepTiles = kStep / 8;       // Of 8 columns.
constexpr int kSizeTiles = kSize / 8;
// Scores are products of queries and keys by 1 / sqrt(kSize); exp() is computed
// as a power of 2.
constexpr float kScale = 0.125f;
constexpr float kScaleLog2 = kScale * 1.4426950408889634f;

// Tiles of 16 rows that a warp owns, and the warps of a block.
constexpr int kQueryTiles = 2;
constexpr int kQueryWarps = 5;
constexpr int kKeyTiles = 1;
constexpr int kKeyWarps = 6;

constexpr int kMinusInfinity = static_cast<int>(0xff800000u);

__host__ __device__ constexpr int padded(int num_rows) {
  return (num_rows + kStep - 1) / kStep * kStep;
}

// Rows of a warp's tiles as the left side of products over the channels, and
// their scores for a step's rows, and sums over steps.
template <int kTiles>
using Rows = uint32_t[kTiles][kProducts][4];
template <int kTiles>
using Scores = float[kTiles][kStepTiles][4];
template <int kTiles>
using Weights = uint32_t[kTiles][kStep / 16][4];
template <int kTiles>
using Sums = float[kTiles][kSizeTiles][4];

// One head of a sample.
template <typename T>
struct Head {
  T* rows = nullptr;
  int64_t stride = 0;

  __device__ Head(T* tensor, const HeadStrides& strides, int sample, int head)
      : rows(tensor + sample * strides.sample + head * strides.head),
        stride(strides.token) {}
};

// Chunks of a row change places with its number: no two of the rows that are
// read at once meet in a bank.
template <typename T>
__device__ T* chunk_of(T* rows, int row, int chunk) {
  return rows + row * kSize + (chunk ^ (row % kRowChunks)) * kChunk;
}

template <typename T>
__device__ void copy_rows(T* to, const Head<const T>& from, int num_rows) {
  const int count = padded(num_rows) * kRowChunks;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const int row = i / kRowChunks;
    const int chunk = i % kRowChunks;
    const bool is_there = row < num_rows;
    copy_async(chunk_of(to, row, chunk),
               from.rows + (is_there ? row : 0) * from.stride + chunk * kChunk,
               is_there);
  }
}

// Rows after the last are zeros.
template <typename T, int kTiles>
__device__ void load_rows(Rows<kTiles>& to, const Head<const T>& from,
                          int first, int num_rows) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + 16 * tile + 8 * half + lane / 4;
      const T* channels = from.rows + row * from.stride + 2 * (lane % 4);
#pragma unroll
      for (int i = 0; i < 2 * kProducts; ++i) {
        to[tile][i / 2][half + 2 * (i % 2)] =
            row < num_rows
                ? *reinterpret_cast<const uint32_t*>(channels + 8 * i)
                : 0;
      }
    }
  }
}

// scores += rows * (kStep rows of shared memory, transposed)
template <typename T, int kTiles>
__device__ void add_scores(Scores<kTiles>& scores, const Rows<kTiles>& rows,
                           const T* shared, int first) {
  const int lane = threadIdx.x % 32;
  const int row = first + lane % 8 + lane / 16 * 8;
  const int chunk = lane / 8 % 2;
#pragma unroll
  for (int product = 0; product < kProducts; ++product) {
#pragma unroll
    for (int pair = 0; pair < kStepTiles / 2; ++pair) {
      uint32_t b[4];
      load_matrices(b, chunk_of(shared, row + 16 * pair, 2 * product + chunk));
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        multiply_add<T>(scores[tile][2 * pair], rows[tile][product], b[0],
                        b[1]);
        multiply_add<T>(scores[tile][2 * pair + 1], rows[tile][product], b[2],
                        b[3]);
      }
    }
  }
}

// sums += weights * (kStep rows of shared memory)
template <typename T, int kTiles>
__device__ void add_weighted(Sums<kTiles>& sums, const Weights<kTiles>& weights,
                             const T* shared, int first) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int product = 0; product < kStep / 16; ++product) {
    const int row = first + 16 * product + lane % 16;
#pragma unroll
    for (int pair = 0; pair < kSizeTiles / 2; ++pair) {
      uint32_t b[4];
      load_transposed_matrices(b, chunk_of(shared, row, 2 * pair + lane / 16));
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        multiply_add<T>(sums[tile][2 * pair], weights[tile][product], b[0],
                        b[1]);
        multiply_add<T>(sums[tile][2 * pair + 1], weights[tile][product], b[2],
                        b[3]);
      }
    }
  }
}

// What a product leaves is what the next one takes on its left side.
template <typename T, int kTiles>
__device__ void round_weights(Weights<kTiles>& weights,
                              const Scores<kTiles>& scores) {
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < kStepTiles; ++i) {
      const float(&pairs)[4] = scores[tile][i];
      weights[tile][i / 2][2 * (i % 2)] = pack_pair<T>(pairs[0], pairs[1]);
      weights[tile][i / 2][2 * (i % 2) + 1] = pack_pair<T>(pairs[2], pairs[3]);
    }
  }
}

// Columns that stand for no key.
template <int kTiles>
__device__ void mask_columns(Scores<kTiles>& scores, int num_columns) {
  const int column = 2 * (threadIdx.x % 4);
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4 * kStepTiles; ++i) {
      if (column + i / 4 * 8 + i % 2 >= num_columns) {
        scores[tile][i / 4][i % 4] = __int_as_float(kMinusInfinity);
      }
    }
  }
}

__device__ float sum_of_row(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

__device__ float max_of_row(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

// Neighbouring threads exchange halves, so that each stores 8 bytes.
template <typename T, int kTiles>
__device__ void store_rows(const Head<T>& to, int first, int num_rows,
                           const Sums<kTiles>& sums) {
  const int lane = threadIdx.x % 32;
  const bool is_odd = lane % 2 == 1;
  const int column = is_odd ? 8 + 2 * (lane % 4 - 1) : 2 * (lane % 4);
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + 16 * tile + 8 * half + lane / 4;
      T* channels = to.rows + row * to.stride + column;
#pragma unroll
      for (int pair = 0; pair < kSizeTiles / 2; ++pair) {
        const float(&left)[4] = sums[tile][2 * pair];
        const float(&right)[4] = sums[tile][2 * pair + 1];
        const uint32_t a = pack_pair<T>(left[2 * half], left[2 * half + 1]);
        const uint32_t b = pack_pair<T>(right[2 * half], right[2 * half + 1]);
        const uint32_t other = __shfl_xor_sync(0xffffffffu, is_odd ? a : b, 1);
        if (row >= num_rows) continue;
        *reinterpret_cast<uint2*>(channels + 16 * pair) =
            is_odd ? make_uint2(other, b) : make_uint2(a, other);
      }
    }
  }
}

template <int kTiles>
__device__ void scale_sums(Sums<kTiles>& sums, float scale) {
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4 * kSizeTiles; ++i) sums[tile][i / 4][i % 4] *= scale;
  }
}

// Adds the columns of a warp's rows to what it has in shared memory.
template <int kTiles>
__device__ void add_columns(float* columns, const Sums<kTiles>& sums, int first,
                            int num_rows) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 2 * kSizeTiles; ++i) {
    float total = 0;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = first + 16 * tile + 8 * half + lane / 4;
        if (row < num_rows) total += sums[tile][i / 2][2 * half + i % 2];
      }
    }
    for (int offset = 4; offset < 32; offset *= 2) {
      total += __shfl_xor_sync(0xffffffffu, total, offset);
    }
    if (lane < 4) columns[i / 2 * 8 + 2 * lane + i % 2] += total;
  }
}

// Adds the warps' columns in their order.
__device__ void store_columns(const ShortAttentionBackwardRequest& request,
                              const float* columns, int num_warps, int which) {
  const int num_heads = request.forward.num_heads;
  const int sample = blockIdx.x / num_heads;
  const int head = blockIdx.x % num_heads;
  float* out = request.partial_sums +
               ((int64_t{sample} * 3 + which) * num_heads + head) * kSize;
  for (int i = threadIdx.x; i < kSize; i += blockDim.x) {
    float total = 0;
    for (int warp = 0; warp < num_warps; ++warp) {
      total += columns[warp * kSize + i];
    }
    out[i] = total;
  }
}

// Of the rows of a thread: two in each tile.
template <int kTiles>
using RowValues = float[kTiles][2];

struct SoftmaxState {
  RowValues<kQueryTiles> max;
  RowValues<kQueryTiles> sum = {};

  __device__ SoftmaxState() {
    for (int i = 0; i < 2 * kQueryTiles; ++i) {
      max[i / 2][i % 2] = __int_as_float(kMinusInfinity);
    }
  }
};

// Scores become weights relative to the largest score so far; earlier sums are
// brought to it.
__device__ void advance_softmax(SoftmaxState& state,
                                Scores<kQueryTiles>& scores,
                                Sums<kQueryTiles>& out) {
#pragma unroll
  for (int tile = 0; tile < kQueryTiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float& max = state.max[tile][half];
      float& sum = state.sum[tile][half];
      const float before = max;
#pragma unroll
      for (int i = 0; i < kStepTiles; ++i) {
        const float(&pair)[4] = scores[tile][i];
        max = fmaxf(max, fmaxf(pair[2 * half], pair[2 * half + 1]));
      }
      max = max_of_row(max);
      const float factor = fast_exp2((before - max) * kScaleLog2);
      const float offset = max * kScaleLog2;
      sum *= factor;
#pragma unroll
      for (int i = 0; i < 2 * kStepTiles; ++i) {
        float& score = scores[tile][i / 2][2 * half + i % 2];
        score = fast_exp2(fmaf(score, kScaleLog2, -offset));
        sum += score;
      }
#pragma unroll
      for (int i = 0; i < 2 * kSizeTiles; ++i) {
        out[tile][i / 2][2 * half + i % 2] *= factor;
      }
    }
  }
}

// Divides by the sums and stores their logarithms.
__device__ void finish_softmax(const SoftmaxState& state,
                               Sums<kQueryTiles>& out, float* log_sums,
                               int first, int num_rows) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 2 * kQueryTiles; ++i) {
    const int tile = i / 2;
    const int half = i % 2;
    const float sum = sum_of_row(state.sum[tile][half]);
    const float inverse = 1.0f / sum;
#pragma unroll
    for (int k = 0; k < 2 * kSizeTiles; ++k) {
      out[tile][k / 2][2 * half + k % 2] *= inverse;
    }
    const int row = first + 8 * i + lane / 4;
    if (lane % 4 == 0 && row < num_rows) {
      log_sums[row] = state.max[tile][half] * kScaleLog2 + log2f(sum);
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
  const HeadStrides strides = which == 0   ? request.strides[0]
                              : which == 1 ? request.strides[1]
                                           : request.strides[2];
  const void* tensor = which == 0   ? request.heads[0]
                       : which == 1 ? request.heads[1]
                                    : request.heads[2];
  return {static_cast<const T*>(tensor), strides, place.sample, place.head};
}

// Of `out`, which is packed.
__device__ HeadStrides out_strides(const ShortAttentionRequest& request) {
  const int64_t token = int64_t{request.num_heads} * kSize;
  return {.sample = request.num_tokens * token, .token = token, .head = kSize};
}

template <typename T>
__global__ void __launch_bounds__(32 * kQueryWarps, 2)
    attention(ShortAttentionRequest request) {
  extern __shared__ uint4 memory[];
  const Place place(request.num_heads);
  const int num_tokens = request.num_tokens;
  T* keys = reinterpret_cast<T*>(memory);
  T* values = keys + padded(num_tokens) * kSize;
  copy_rows(keys, input_head<T>(request, place, 1), num_tokens);
  copy_rows(values, input_head<T>(request, place, 2), num_tokens);
  wait_for_copies();
  __syncthreads();
  const Head<T> out_head(static_cast<T*>(request.out), out_strides(request),
                         place.sample, place.head);
  float* log_sums = request.log_sums + int64_t{blockIdx.x} * num_tokens;
  constexpr int kTileRows = 16 * kQueryTiles;
  for (int row = static_cast<int>(threadIdx.x) / 32 * kTileRows;
       row < num_tokens; row += static_cast<int>(blockDim.x) / 32 * kTileRows) {
    Rows<kQueryTiles> queries;
    load_rows<T, kQueryTiles>(queries, input_head<T>(request, place, 0), row,
                              num_tokens);
    SoftmaxState state;
    Sums<kQueryTiles> out = {};
    for (int first = 0; first < num_tokens; first += kStep) {
      Scores<kQueryTiles> scores = {};
      add_scores<T, kQueryTiles>(scores, queries, keys, first);
      if (first + kStep > num_tokens) {
        mask_columns<kQueryTiles>(scores, num_tokens - first);
      }
      advance_softmax(state, scores, out);
      Weights<kQueryTiles> weights;
      round_weights<T, kQueryTiles>(weights, scores);
      add_weighted<T, kQueryTiles>(out, weights, values, first);
    }
    finish_softmax(state, out, log_sums, row, num_tokens);
    store_rows<T, kQueryTiles>(out_head, row, num_tokens, out);
  }
}

// What backward needs of a thread's rows.
template <typename T>
struct QueryRows {
  Rows<kQueryTiles> queries;
  Rows<kQueryTiles> d_out;
  RowValues<kQueryTiles> log_sums;
  RowValues<kQueryTiles> dots;
};

template <typename T>
__device__ void load_query_rows(QueryRows<T>& rows,
                                const ShortAttentionBackwardRequest& request,
                                const Place& place, int first) {
  const ShortAttentionRequest& forward = request.forward;
  const int num_tokens = forward.num_tokens;
  const int lane = threadIdx.x % 32;
  const int64_t offset = int64_t{blockIdx.x} * num_tokens;
  load_rows<T, kQueryTiles>(rows.queries, input_head<T>(forward, place, 0),
                            first, num_tokens);
  load_rows<T, kQueryTiles>(rows.d_out,
                            {static_cast<const T*>(request.d_out),
                             request.d_out_strides, place.sample, place.head},
                            first, num_tokens);
  const Head<const T> out(static_cast<const T*>(forward.out),
                          out_strides(forward), place.sample, place.head);
#pragma unroll
  for (int i = 0; i < 2 * kQueryTiles; ++i) {
    const int tile = i / 2;
    const int half = i % 2;
    const int row = first + 8 * i + lane / 4;
    const bool is_there = row < num_tokens;
    const T* channels =
        out.rows + (is_there ? row : 0) * out.stride + 2 * (lane % 4);
    float dot = 0;
#pragma unroll
    for (int k = 0; k < 2 * kProducts; ++k) {
      const float2 a = unpack_pair<T>(
          *reinterpret_cast<const uint32_t*>(channels + kChunk * k));
      const float2 b =
          unpack_pair<T>(rows.d_out[tile][k / 2][half + 2 * (k % 2)]);
      dot += a.x * b.x + a.y * b.y;
    }
    dot = sum_of_row(dot);
    rows.dots[tile][half] = dot;
    rows.log_sums[tile][half] = is_there ? forward.log_sums[offset + row] : 0;
    if (lane % 4 == 0 && is_there) request.dots[offset + row] = dot;
  }
}

// Scores become their gradients, without kScale; d_weights: of the weights.
__device__ void backward_of_rows(Scores<kQueryTiles>& scores,
                                 const Scores<kQueryTiles>& d_weights,
                                 const RowValues<kQueryTiles>& log_sums,
                                 const RowValues<kQueryTiles>& dots) {
#pragma unroll
  for (int tile = 0; tile < kQueryTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4 * kStepTiles; ++i) {
      const int half = i % 4 / 2;
      float& score = scores[tile][i / 4][i % 4];
      score = fast_exp2(fmaf(score, kScaleLog2, -log_sums[tile][half])) *
              (d_weights[tile][i / 4][i % 4] - dots[tile][half]);
    }
  }
}

// Shared memory for the columns of each warp, behind the rows.
template <typename T>
__device__ float* clear_columns(T* behind, int count) {
  auto* columns = reinterpret_cast<float*>(behind);
  for (int i = threadIdx.x; i < count; i += blockDim.x) columns[i] = 0;
  return columns;
}

template <typename T>
__global__ void __launch_bounds__(32 * kQueryWarps, 2)
    attention_d_queries(ShortAttentionBackwardRequest request) {
  extern __shared__ uint4 memory[];
  const ShortAttentionRequest& forward = request.forward;
  const Place place(forward.num_heads);
  const int num_tokens = forward.num_tokens;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  T* keys = reinterpret_cast<T*>(memory);
  T* values = keys + padded(num_tokens) * kSize;
  float* columns =
      clear_columns(values + padded(num_tokens) * kSize, num_warps * kSize);
  copy_rows(keys, input_head<T>(forward, place, 1), num_tokens);
  copy_rows(values, input_head<T>(forward, place, 2), num_tokens);
  wait_for_copies();
  __syncthreads();
  const Head<T> d_queries(static_cast<T*>(request.d_heads[0]),
                          request.d_strides[0], place.sample, place.head);
  constexpr int kTileRows = 16 * kQueryTiles;
  for (int row = warp * kTileRows; row < num_tokens;
       row += num_warps * kTileRows) {
    QueryRows<T> rows;
    load_query_rows(rows, request, place, row);
    Sums<kQueryTiles> sums = {};
    for (int first = 0; first < num_tokens; first += kStep) {
      Scores<kQueryTiles> scores = {};
      Scores<kQueryTiles> d_weights = {};
      add_scores<T, kQueryTiles>(scores, rows.queries, keys, first);
      add_scores<T, kQueryTiles>(d_weights, rows.d_out, values, first);
      if (first + kStep > num_tokens) {
        mask_columns<kQueryTiles>(scores, num_tokens - first);
      }
      backward_of_rows(scores, d_weights, rows.log_sums, rows.dots);
      Weights<kQueryTiles> weights;
      round_weights<T, kQueryTiles>(weights, scores);
      add_weighted<T, kQueryTiles>(sums, weights, keys, first);
    }
    scale_sums<kQueryTiles>(sums, kScale);
    store_rows<T, kQueryTiles>(d_queries, row, num_tokens, sums);
    if (request.d_bias != nullptr) {
      add_columns<kQueryTiles>(columns + warp * kSize, sums, row, num_tokens);
    }
  }
  if (request.d_bias == nullptr) return;
  __syncthreads();
  store_columns(request, columns, num_warps, 0);
}

// Of queries, as the columns of scores; for those after the last, weights are
// zero.
struct QueryValues {
  float* log_sums = nullptr;
  float* dots = nullptr;
};

__device__ QueryValues
load_query_values(const ShortAttentionBackwardRequest& request, float* memory) {
  const int num_tokens = request.forward.num_tokens;
  const int count = padded(num_tokens);
  const int64_t offset = int64_t{blockIdx.x} * num_tokens;
  const QueryValues values{.log_sums = memory, .dots = memory + count};
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const bool is_there = i < num_tokens;
    values.log_sums[i] = is_there ? request.forward.log_sums[offset + i]
                                  : -__int_as_float(kMinusInfinity);
    values.dots[i] = is_there ? request.dots[offset + i] : 0;
  }
  return values;
}

// Scores, whose columns are queries, become weights, and d_weights the
// gradients of scores, without kScale.
__device__ void backward_of_columns(Scores<kKeyTiles>& scores,
                                    Scores<kKeyTiles>& d_weights,
                                    const QueryValues& queries, int first) {
  const int column = first + 2 * (threadIdx.x % 4);
#pragma unroll
  for (int i = 0; i < kStepTiles; ++i) {
    const float2 log_sums =
        *reinterpret_cast<const float2*>(queries.log_sums + column + 8 * i);
    const float2 dots =
        *reinterpret_cast<const float2*>(queries.dots + column + 8 * i);
#pragma unroll
    for (int tile = 0; tile < kKeyTiles; ++tile) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float& score = scores[tile][i][k];
        float& d_weight = d_weights[tile][i][k];
        score = fast_exp2(
            fmaf(score, kScaleLog2, -(k % 2 == 0 ? log_sums.x : log_sums.y)));
        d_weight = score * (d_weight - (k % 2 == 0 ? dots.x : dots.y));
      }
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(32 * kKeyWarps, 2)
    attention_d_keys_values(ShortAttentionBackwardRequest request) {
  extern __shared__ uint4 memory[];
  const ShortAttentionRequest& forward = request.forward;
  const Place place(forward.num_heads);
  const int num_tokens = forward.num_tokens;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  const int rows_size = padded(num_tokens) * kSize;
  T* queries = reinterpret_cast<T*>(memory);
  T* d_out = queries + rows_size;
  float* d_values_columns =
      clear_columns(d_out + rows_size, 2 * num_warps * kSize);
  float* d_keys_columns = d_values_columns + num_warps * kSize;
  copy_rows(queries, input_head<T>(forward, place, 0), num_tokens);
  copy_rows(d_out,
            Head<const T>(static_cast<const T*>(request.d_out),
                          request.d_out_strides, place.sample, place.head),
            num_tokens);
  const QueryValues query_values =
      load_query_values(request, d_keys_columns + num_warps * kSize);
  wait_for_copies();
  __syncthreads();
  const Head<T> d_keys_head(static_cast<T*>(request.d_heads[1]),
                            request.d_strides[1], place.sample, place.head);
  const Head<T> d_values_head(static_cast<T*>(request.d_heads[2]),
                              request.d_strides[2], place.sample, place.head);
  constexpr int kTileRows = 16 * kKeyTiles;
  for (int row = warp * kTileRows; row < num_tokens;
       row += num_warps * kTileRows) {
    Rows<kKeyTiles> keys;
    Rows<kKeyTiles> values;
    load_rows<T, kKeyTiles>(keys, input_head<T>(forward, place, 1), row,
                            num_tokens);
    load_rows<T, kKeyTiles>(values, input_head<T>(forward, place, 2), row,
                            num_tokens);
    Sums<kKeyTiles> d_keys = {};
    Sums<kKeyTiles> d_values = {};
    for (int first = 0; first < num_tokens; first += kStep) {
      Scores<kKeyTiles> scores = {};
      Scores<kKeyTiles> d_weights = {};
      add_scores<T, kKeyTiles>(scores, keys, queries, first);
      add_scores<T, kKeyTiles>(d_weights, values, d_out, first);
      backward_of_columns(scores, d_weights, query_values, first);
      Weights<kKeyTiles> weights;
      round_weights<T, kKeyTiles>(weights, scores);
      add_weighted<T, kKeyTiles>(d_values, weights, d_out, first);
      round_weights<T, kKeyTiles>(weights, d_weights);
      add_weighted<T, kKeyTiles>(d_keys, weights, queries, first);
    }
    scale_sums<kKeyTiles>(d_keys, kScale);
    store_rows<T, kKeyTiles>(d_keys_head, row, num_tokens, d_keys);
    store_rows<T, kKeyTiles>(d_values_head, row, num_tokens, d_values);
    if (request.d_bias != nullptr) {
      add_columns<kKeyTiles>(d_keys_columns + warp * kSize, d_keys, row,
                             num_tokens);
      add_columns<kKeyTiles>(d_values_columns + warp * kSize, d_values, row,
                             num_tokens);
    }
  }
  if (request.d_bias == nullptr) return;
  __syncthreads();
  store_columns(request, d_keys_columns, num_warps, 1);
  store_columns(request, d_values_columns, num_warps, 2);
}

// As few as need the same number of rounds as kMost.
int warps_for(int num_tokens, int tile_rows, int most) {
  const int tiles = (num_tokens + tile_rows - 1) / tile_rows;
  const int rounds = (tiles + most - 1) / most;
  return (tiles + rounds - 1) / rounds;
}

int query_warps_for(int num_tokens) {
  return warps_for(num_tokens, 16 * kQueryTiles, kQueryWarps);
}

int key_warps_for(int num_tokens) {
  return warps_for(num_tokens, 16 * kKeyTiles, kKeyWarps);
}

// Shared memory: rows of two tensors, sums of columns of each warp, and values
// of each query.
int attention_bytes(int num_tokens) {
  return 2 * padded(num_tokens) * kSize * static_cast<int>(sizeof(__half));
}

int d_queries_bytes(int num_tokens) {
  return attention_bytes(num_tokens) +
         query_warps_for(num_tokens) * kSize * static_cast<int>(sizeof(float));
}

int d_keys_values_bytes(int num_tokens) {
  return attention_bytes(num_tokens) +
         2 * (key_warps_for(num_tokens) * kSize + padded(num_tokens)) *
             static_cast<int>(sizeof(float));
}

template <typename Request>
void launch_kernel(void (*kernel)(Request), const Request& request, int blocks,
                   int warps, int shared_bytes, cudaStream_t stream) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       shared_bytes);
  kernel<<<blocks, 32 * warps, shared_bytes, stream>>>(request);
}

template <typename Function>
void with_half(ElementType type, Function function) {
  if (type == ElementType::kFloat16) {
    function(static_cast<__half*>(nullptr));
  } else {
    function(static_cast<__nv_bfloat16*>(nullptr));
  }
}

}  // namespace

// Of the current device.
extern "C" LOCKSTEP_EXPORT bool lockstep_cuda_has_short_attention() {
  int device = 0;
  int major = 0;
  int shared_bytes = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                                device) == cudaSuccess &&
         cudaDeviceGetAttribute(&shared_bytes,
                                cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                device) == cudaSuccess &&
         major >= 8 &&
         shared_bytes >= d_keys_values_bytes(kShortAttentionTokens);
}

// Launch on a stream of the current device.
extern "C" LOCKSTEP_EXPORT void lockstep_cuda_short_attention(
    const ShortAttentionRequest* request, void* stream) {
  const int blocks =
      static_cast<int>(request->num_samples) * request->num_heads;
  const int num_tokens = request->num_tokens;
  with_half(request->type, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    launch_kernel(attention<T>, *request, blocks, query_warps_for(num_tokens),
                  attention_bytes(num_tokens),
                  static_cast<cudaStream_t>(stream));
  });
  check_launch("short_attention");
}

extern "C" LOCKSTEP_EXPORT void lockstep_cuda_short_attention_backward(
    const ShortAttentionBackwardRequest* request, void* stream) {
  const ShortAttentionRequest& forward = request->forward;
  const int blocks = static_cast<int>(forward.num_samples) * forward.num_heads;
  const int num_tokens = forward.num_tokens;
  const auto queue = static_cast<cudaStream_t>(stream);
  with_half(forward.type, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    launch_kernel(attention_d_queries<T>, *request, blocks,
                  query_warps_for(num_tokens), d_queries_bytes(num_tokens),
                  queue);
    launch_kernel(attention_d_keys_values<T>, *request, blocks,
                  key_warps_for(num_tokens), d_keys_values_bytes(num_tokens),
                  queue);
  });
  check_launch("short_attention_backward");
  if (request->d_bias == nullptr) return;
  add_column_sums(request->partial_sums, request->d_bias,
                  int64_t{3} * forward.num_heads * kSize, forward.num_samples,
                  queue);
}

// The CUDA side of short_attention.cpp; part of liblockstep_cuda. No torch
// header: this file compiles in seconds.
//
// A block computes one head of one sample: what all its rows need lies in its
// shared memory, and each group of warps owns tiles of rows, whose results it
// keeps in registers. Backward recomputes the scores twice, once by the owners
// of queries and once by the owners of keys: no group waits for another, and
// sums have one order.
#include "lockstep/export.h"
#include "lockstep/kernels/column_sums.cuh"
#include "lockstep/kernels/short_attention_request.h"
#include "lockstep/kernels/warpgroup_product.cuh"

namespace {

using namespace lockstep::kernels;  // NOLINT: everything here is a kernel's.

constexpr int kSize = kShortAttentionSize;
constexpr int kChunk = 8;                   // Elements of 16 bytes.
constexpr int kRowChunks = kSize / kChunk;  // A head's.
constexpr unsigned kChunkBytes = 16;
constexpr unsigned kRowBytes = kRowChunks * kChunkBytes;
constexpr int kProducts = kSize / 16;  // Whose sum is over the channels.
constexpr int kSizeTiles = kSize / 8;
// Scores are products of queries and keys by 1 / sqrt(kSize); exp() is computed
// as a power of 2.
constexpr float kScale = 0.125f;
constexpr float kScaleLog2 = kScale * 1.4426950408889634f;
// Weights are at most 2 to the power of this before they are divided by their
// sum.
constexpr float kHeadroomLog2 = 8.0f;

// How a kernel divides its work: rows of shared memory that a tile meets at
// once, groups of warps of a block, and blocks of a multiprocessor.
template <int step, int groups, int blocks>
struct Plan {
  static constexpr int kStep = step;
  static constexpr int kStepTiles = step / 8;  // 8 columns each.
  static constexpr int kGroups = groups;
  static constexpr int kThreads = 32 * kWarpsOfGroup * groups;
  static constexpr int kBlocks = blocks;
};
// The fastest of those tried on an H200, at 256, 260 and 288 tokens.
using ForwardPlan = Plan<96, 1, 3>;
using QueriesPlan = Plan<48, 1, 3>;
using KeysPlan = Plan<96, 1, 2>;

// A thread's part of a tile's rows, as the left side of products over the
// channels, of their scores for a step's rows, and of sums over steps.
using Rows = uint32_t[kProducts][4];
template <class P>
using Scores = float[P::kStepTiles][4];
template <class P>
using Weights = uint32_t[P::kStep / 16][4];
using Sums = float[kSizeTiles][4];
// One of each of its two rows.
using RowValues = float[2];

template <class P>
__host__ __device__ constexpr int padded(int num_rows) {
  return (num_rows + P::kStep - 1) / P::kStep * P::kStep;
}

__device__ float infinity() { return __int_as_float(0x7f800000); }

__device__ int lane_of_warp() { return static_cast<int>(threadIdx.x % 32); }

// The first of a thread's two rows in a tile; the other one is 8 below.
__device__ int row_of_thread() {
  return static_cast<int>(threadIdx.x / 32 % kWarpsOfGroup * 16) +
         lane_of_warp() / 4;
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

template <class P, typename T>
__device__ void copy_rows(const SharedRows<T>& to, const Head<const T>& from,
                          int num_rows) {
  const int count = padded<P>(num_rows) * kRowChunks;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
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

__device__ float sum_of_row(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

__device__ float max_of_row(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
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

__device__ void scale_sums(Sums& sums, float scale) {
#pragma unroll
  for (int i = 0; i < 4 * kSizeTiles; ++i) sums[i / 4][i % 4] *= scale;
}

// Adds the columns of a warp's rows to what it has in shared memory. Threads of
// one column exchange halves of what they have until each has two sums.
__device__ void add_columns(float* columns, const Sums& sums, int first,
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
__device__ void clear_columns(float* columns, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) columns[i] = 0;
}

// Adds the warps' columns in their order.
__device__ void store_columns(const ShortAttentionBackwardRequest& request,
                              const float* columns, int which) {
  const int num_heads = request.forward.num_heads;
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  const int sample = static_cast<int>(blockIdx.x) / num_heads;
  const int head = static_cast<int>(blockIdx.x) % num_heads;
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

struct SoftmaxState {
  // Near the largest score so far, times kScaleLog2.
  RowValues reference = {-infinity(), -infinity()};
  RowValues sum = {};
};

// Brings earlier sums to the largest scores: rarely, since weights may be
// large.
__device__ void move_reference(SoftmaxState& state, const RowValues& max,
                               Sums& out) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float reference =
        fmaxf(state.reference[half], max_of_row(max[half]) * kScaleLog2);
    const float factor = fast_exp2(state.reference[half] - reference);
    state.reference[half] = reference;
    state.sum[half] *= factor;
#pragma unroll
    for (int i = 0; i < 2 * kSizeTiles; ++i) {
      out[i / 2][2 * half + i % 2] *= factor;
    }
  }
}

// Scores become weights relative to the reference.
template <class P>
__device__ void advance_softmax(SoftmaxState& state, Scores<P>& scores,
                                Sums& out) {
  RowValues max = {-infinity(), -infinity()};
#pragma unroll
  for (int i = 0; i < 4 * P::kStepTiles; ++i) {
    max[i % 4 / 2] = fmaxf(max[i % 4 / 2], scores[i / 4][i % 4]);
  }
  const float excess = fmaxf(fmaf(max[0], kScaleLog2, -state.reference[0]),
                             fmaf(max[1], kScaleLog2, -state.reference[1]));
  if (__any_sync(0xffffffffu, excess > kHeadroomLog2)) {
    move_reference(state, max, out);
  }
#pragma unroll
  for (int i = 0; i < 4 * P::kStepTiles; ++i) {
    const int half = i % 4 / 2;
    float& score = scores[i / 4][i % 4];
    score = fast_exp2(fmaf(score, kScaleLog2, -state.reference[half]));
    state.sum[half] += score;
  }
}

// Divides by the sums and stores their logarithms.
__device__ void finish_softmax(const SoftmaxState& state, Sums& out,
                               float* log_sums, int first, int num_rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = sum_of_row(state.sum[half]);
    const float inverse = 1.0f / sum;
#pragma unroll
    for (int i = 0; i < 2 * kSizeTiles; ++i) {
      out[i / 2][2 * half + i % 2] *= inverse;
    }
    const int row = first + row_of_thread() + 8 * half;
    if (lane_of_warp() % 4 == 0 && row < num_rows) {
      log_sums[row] = state.reference[half] + log2f(sum);
    }
  }
}

// The tiles of a group: its first row, and rows from one to its next.
__device__ int first_row_of_group() {
  return static_cast<int>(threadIdx.x) / (32 * kWarpsOfGroup) * kRowsOfGroup;
}
__device__ int rows_of_block() {
  return static_cast<int>(blockDim.x) / (32 * kWarpsOfGroup) * kRowsOfGroup;
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

// The strides of `out`, which is packed.
__device__ HeadStrides out_strides(const ShortAttentionRequest& request) {
  const int64_t token = int64_t{request.num_heads} * kSize;
  return {.sample = request.num_tokens * token, .token = token, .head = kSize};
}

template <typename T, class P>
__global__ void __launch_bounds__(P::kThreads, P::kBlocks)
    attention(ShortAttentionRequest request) {
  extern __shared__ __align__(1024) uint4 memory[];
  const Place place(request.num_heads);
  const int num_tokens = request.num_tokens;
  const SharedRows<T> keys{reinterpret_cast<T*>(memory)};
  const SharedRows<T> values{keys.rows + padded<P>(num_tokens) * kSize};
  copy_rows<P>(keys, input_head<T>(request, place, 1), num_tokens);
  copy_rows<P>(values, input_head<T>(request, place, 2), num_tokens);
  const Head<const T> queries_head = input_head<T>(request, place, 0);
  Rows queries;
  load_rows(queries, queries_head, first_row_of_group(), num_tokens);
  wait_for_copies();
  __syncthreads();
  const uint64_t keys_matrix = keys.matrix();
  const uint64_t values_matrix = values.matrix();
  const Head<T> out_head(static_cast<T*>(request.out), out_strides(request),
                         place.sample, place.head);
  float* log_sums = request.log_sums + int64_t{blockIdx.x} * num_tokens;
  for (int row = first_row_of_group(); row < num_tokens;
       row += rows_of_block()) {
    SoftmaxState state;
    Sums out = {};
    for (int first = 0; first < num_tokens; first += P::kStep) {
      const uint64_t offset = matrix_offset(first * kRowBytes);
      Scores<P> scores;
      settle(queries);
      begin_products();
      start_scores<P, T>(scores, queries, keys_matrix + offset);
      wait_for_products();
      settle(scores);
      if (first + P::kStep > num_tokens) {
        mask_columns<P>(scores, num_tokens - first);
      }
      advance_softmax<P>(state, scores, out);
      Weights<P> weights;
      round_weights<P, T>(weights, scores);
      settle(weights);
      settle(out);
      begin_products();
      start_weighted<P, T>(out, weights, values_matrix + offset);
      wait_for_products();
      settle(out);
    }
    load_rows(queries, queries_head, row + rows_of_block(), num_tokens);
    finish_softmax(state, out, log_sums, row, num_tokens);
    store_rows(out_head, row, num_tokens, out);
  }
}

// What backward needs of a thread's queries.
struct QueryRows {
  Rows queries;
  Rows d_out;
  Rows out;
  RowValues log_sums;
};

// Reads queries of one head.
template <typename T>
struct QueryReader {
  Head<const T> queries;
  Head<const T> d_out;
  Head<const T> out;
  const float* log_sums = nullptr;
  int num_tokens = 0;

  __device__ QueryReader(const ShortAttentionBackwardRequest& request,
                         const Place& place)
      : queries(input_head<T>(request.forward, place, 0)),
        d_out(static_cast<const T*>(request.d_out), request.d_out_strides,
              place.sample, place.head),
        out(static_cast<const T*>(request.forward.out),
            out_strides(request.forward), place.sample, place.head),
        log_sums(request.forward.log_sums +
                 int64_t{blockIdx.x} * request.forward.num_tokens),
        num_tokens(request.forward.num_tokens) {}

  __device__ void load(QueryRows& rows, int first) const {
    load_rows(rows.queries, queries, first, num_tokens);
    load_rows(rows.d_out, d_out, first, num_tokens);
    load_rows(rows.out, out, first, num_tokens);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + row_of_thread() + 8 * half;
      rows.log_sums[half] = row < num_tokens ? log_sums[row] : 0;
    }
  }
};

// Products of each row of out and d_out, which the owners of keys need, too.
template <typename T>
__device__ void take_dots(RowValues& dots, const QueryRows& rows, float* all,
                          int first, int num_rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float dot = 0;
#pragma unroll
    for (int k = 0; k < 2 * kProducts; ++k) {
      const float2 a = unpack_pair<T>(rows.out[k / 2][half + 2 * (k % 2)]);
      const float2 b = unpack_pair<T>(rows.d_out[k / 2][half + 2 * (k % 2)]);
      dot += a.x * b.x + a.y * b.y;
    }
    dots[half] = sum_of_row(dot);
    const int row = first + row_of_thread() + 8 * half;
    if (lane_of_warp() % 4 == 0 && row < num_rows) all[row] = dots[half];
  }
}

// Scores become their gradients, without kScale; d_weights: of the weights.
template <class P>
__device__ void backward_of_rows(Scores<P>& scores, const Scores<P>& d_weights,
                                 const RowValues& log_sums,
                                 const RowValues& dots) {
#pragma unroll
  for (int i = 0; i < 4 * P::kStepTiles; ++i) {
    const int half = i % 4 / 2;
    float& score = scores[i / 4][i % 4];
    score = fast_exp2(fmaf(score, kScaleLog2, -log_sums[half])) *
            (d_weights[i / 4][i % 4] - dots[half]);
  }
}

template <typename T, class P>
__global__ void __launch_bounds__(P::kThreads, P::kBlocks)
    attention_d_queries(ShortAttentionBackwardRequest request) {
  extern __shared__ __align__(1024) uint4 memory[];
  const ShortAttentionRequest& forward = request.forward;
  const Place place(forward.num_heads);
  const int num_tokens = forward.num_tokens;
  const int rows_size = padded<P>(num_tokens) * kSize;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  const SharedRows<T> keys{reinterpret_cast<T*>(memory)};
  const SharedRows<T> values{keys.rows + rows_size};
  auto* columns = reinterpret_cast<float*>(values.rows + rows_size);
  clear_columns(columns, num_warps * kSize);
  copy_rows<P>(keys, input_head<T>(forward, place, 1), num_tokens);
  copy_rows<P>(values, input_head<T>(forward, place, 2), num_tokens);
  const QueryReader<T> reader(request, place);
  QueryRows rows;
  reader.load(rows, first_row_of_group());
  wait_for_copies();
  __syncthreads();
  const uint64_t keys_matrix = keys.matrix();
  const uint64_t values_matrix = values.matrix();
  const Head<T> d_queries(static_cast<T*>(request.d_heads[0]),
                          request.d_strides[0], place.sample, place.head);
  for (int row = first_row_of_group(); row < num_tokens;
       row += rows_of_block()) {
    RowValues dots;
    take_dots<T>(dots, rows, request.dots + int64_t{blockIdx.x} * num_tokens,
                 row, num_tokens);
    Sums sums = {};
    for (int first = 0; first < num_tokens; first += P::kStep) {
      const uint64_t offset = matrix_offset(first * kRowBytes);
      Scores<P> scores;
      Scores<P> d_weights;
      settle(rows.queries);
      settle(rows.d_out);
      begin_products();
      start_scores<P, T>(scores, rows.queries, keys_matrix + offset);
      start_scores<P, T>(d_weights, rows.d_out, values_matrix + offset);
      wait_for_products();
      settle(scores);
      settle(d_weights);
      if (first + P::kStep > num_tokens) {
        mask_columns<P>(scores, num_tokens - first);
      }
      backward_of_rows<P>(scores, d_weights, rows.log_sums, dots);
      Weights<P> weights;
      round_weights<P, T>(weights, scores);
      settle(weights);
      begin_products();
      start_weighted<P, T>(sums, weights, keys_matrix + offset);
      wait_for_products();
      settle(sums);
    }
    reader.load(rows, row + rows_of_block());
    scale_sums(sums, kScale);
    store_rows(d_queries, row, num_tokens, sums);
    if (request.d_bias != nullptr) {
      add_columns(columns + warp * kSize, sums, row, num_tokens);
    }
  }
  if (request.d_bias == nullptr) return;
  __syncthreads();
  store_columns(request, columns, 0);
}

// What the columns of scores, queries, bring along.
struct QueryValues {
  float* log_sums = nullptr;
  float* dots = nullptr;
};

// Starts copies. Queries after the last have zeros for all that they weigh.
template <class P>
__device__ void copy_query_values(
    const QueryValues& to, const ShortAttentionBackwardRequest& request) {
  const int num_tokens = request.forward.num_tokens;
  const int64_t offset = int64_t{blockIdx.x} * num_tokens;
  for (int i = threadIdx.x; i < padded<P>(num_tokens); i += blockDim.x) {
    const bool is_there = i < num_tokens;
    const int64_t from = offset + (is_there ? i : 0);
    copy_async(to.log_sums + i, request.forward.log_sums + from, is_there);
    copy_async(to.dots + i, request.dots + from, is_there);
  }
}

// Scores, whose columns are queries, become weights, and d_weights the
// gradients of scores, without kScale.
template <class P>
__device__ void backward_of_columns(Scores<P>& scores, Scores<P>& d_weights,
                                    const QueryValues& queries, int first) {
  const int column = first + 2 * (lane_of_warp() % 4);
#pragma unroll
  for (int i = 0; i < P::kStepTiles; ++i) {
    const float2 log_sums =
        *reinterpret_cast<const float2*>(queries.log_sums + column + 8 * i);
    const float2 dots =
        *reinterpret_cast<const float2*>(queries.dots + column + 8 * i);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const bool is_left = k % 2 == 0;
      float& score = scores[i][k];
      float& d_weight = d_weights[i][k];
      score = fast_exp2(
          fmaf(score, kScaleLog2, -(is_left ? log_sums.x : log_sums.y)));
      d_weight = score * (d_weight - (is_left ? dots.x : dots.y));
    }
  }
}

template <typename T, class P>
__global__ void __launch_bounds__(P::kThreads, P::kBlocks)
    attention_d_keys_values(ShortAttentionBackwardRequest request) {
  extern __shared__ __align__(1024) uint4 memory[];
  const ShortAttentionRequest& forward = request.forward;
  const Place place(forward.num_heads);
  const int num_tokens = forward.num_tokens;
  const int rows_size = padded<P>(num_tokens) * kSize;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  const SharedRows<T> queries{reinterpret_cast<T*>(memory)};
  const SharedRows<T> d_out{queries.rows + rows_size};
  auto* d_values_columns = reinterpret_cast<float*>(d_out.rows + rows_size);
  float* d_keys_columns = d_values_columns + num_warps * kSize;
  const QueryValues query_values{
      .log_sums = d_keys_columns + num_warps * kSize,
      .dots = d_keys_columns + num_warps * kSize + padded<P>(num_tokens)};
  clear_columns(d_values_columns, 2 * num_warps * kSize);
  copy_rows<P>(queries, input_head<T>(forward, place, 0), num_tokens);
  copy_rows<P>(d_out,
               Head<const T>(static_cast<const T*>(request.d_out),
                             request.d_out_strides, place.sample, place.head),
               num_tokens);
  copy_query_values<P>(query_values, request);
  const Head<const T> keys_head = input_head<T>(forward, place, 1);
  const Head<const T> values_head = input_head<T>(forward, place, 2);
  Rows keys;
  Rows values;
  load_rows(keys, keys_head, first_row_of_group(), num_tokens);
  load_rows(values, values_head, first_row_of_group(), num_tokens);
  wait_for_copies();
  __syncthreads();
  const uint64_t queries_matrix = queries.matrix();
  const uint64_t d_out_matrix = d_out.matrix();
  const Head<T> d_keys_head(static_cast<T*>(request.d_heads[1]),
                            request.d_strides[1], place.sample, place.head);
  const Head<T> d_values_head(static_cast<T*>(request.d_heads[2]),
                              request.d_strides[2], place.sample, place.head);
  for (int row = first_row_of_group(); row < num_tokens;
       row += rows_of_block()) {
    Sums d_keys = {};
    Sums d_values = {};
    for (int first = 0; first < num_tokens; first += P::kStep) {
      const uint64_t offset = matrix_offset(first * kRowBytes);
      Scores<P> scores;
      Scores<P> d_weights;
      settle(keys);
      settle(values);
      begin_products();
      start_scores<P, T>(scores, keys, queries_matrix + offset);
      start_scores<P, T>(d_weights, values, d_out_matrix + offset);
      wait_for_products();
      settle(scores);
      settle(d_weights);
      backward_of_columns<P>(scores, d_weights, query_values, first);
      Weights<P> weights;
      Weights<P> d_scores;
      round_weights<P, T>(weights, scores);
      round_weights<P, T>(d_scores, d_weights);
      settle(weights);
      settle(d_scores);
      begin_products();
      start_weighted<P, T>(d_values, weights, d_out_matrix + offset);
      start_weighted<P, T>(d_keys, d_scores, queries_matrix + offset);
      wait_for_products();
      settle(d_values);
      settle(d_keys);
    }
    load_rows(keys, keys_head, row + rows_of_block(), num_tokens);
    load_rows(values, values_head, row + rows_of_block(), num_tokens);
    scale_sums(d_keys, kScale);
    store_rows(d_keys_head, row, num_tokens, d_keys);
    store_rows(d_values_head, row, num_tokens, d_values);
    if (request.d_bias != nullptr) {
      add_columns(d_keys_columns + warp * kSize, d_keys, row, num_tokens);
      add_columns(d_values_columns + warp * kSize, d_values, row, num_tokens);
    }
  }
  if (request.d_bias == nullptr) return;
  __syncthreads();
  store_columns(request, d_keys_columns, 1);
  store_columns(request, d_values_columns, 2);
}

// As few groups as need the same number of rounds as all.
template <class P>
int warps_for(int num_tokens) {
  const int tiles = (num_tokens + kRowsOfGroup - 1) / kRowsOfGroup;
  const int rounds = (tiles + P::kGroups - 1) / P::kGroups;
  return kWarpsOfGroup * ((tiles + rounds - 1) / rounds);
}

// Shared memory: rows of two tensors, and for each warp the columns of
// num_columns tensors.
template <class P>
int shared_bytes(int num_tokens, int num_columns) {
  return static_cast<int>(2 * padded<P>(num_tokens) * kRowBytes) +
         num_columns * warps_for<P>(num_tokens) * kSize *
             static_cast<int>(sizeof(float));
}

int d_keys_values_bytes(int num_tokens) {
  return shared_bytes<KeysPlan>(num_tokens, 2) +
         2 * padded<KeysPlan>(num_tokens) * static_cast<int>(sizeof(float));
}

template <class P, typename Request>
void launch_kernel(void (*kernel)(Request), const Request& request,
                   int num_tokens, int num_heads, int bytes,
                   cudaStream_t stream) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       bytes);
  kernel<<<num_heads, 32 * warps_for<P>(num_tokens), bytes, stream>>>(request);
}

template <typename Function>
void with_half(ElementType type, Function function) {
  if (type == ElementType::kFloat16) {
    function(static_cast<__half*>(nullptr));
  } else {
    function(static_cast<__nv_bfloat16*>(nullptr));
  }
}

int heads_of_all(const ShortAttentionRequest& request) {
  return static_cast<int>(request.num_samples) * request.num_heads;
}

}  // namespace

// Whether the current device has it and its code here was compiled for it: code
// for earlier processors runs there, too, but without products of groups.
extern "C" LOCKSTEP_EXPORT bool lockstep_cuda_has_short_attention() {
  int device = 0;
  int major = 0;
  cudaFuncAttributes code{};
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                                device) == cudaSuccess &&
         major == 9 &&
         cudaFuncGetAttributes(&code, attention<__nv_bfloat16, ForwardPlan>) ==
             cudaSuccess &&
         code.ptxVersion == 90;
}

// Launch on a stream of the current device.
extern "C" LOCKSTEP_EXPORT void lockstep_cuda_short_attention(
    const ShortAttentionRequest* request, void* stream) {
  const int num_tokens = request->num_tokens;
  with_half(request->type, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    launch_kernel<ForwardPlan>(attention<T, ForwardPlan>, *request, num_tokens,
                               heads_of_all(*request),
                               shared_bytes<ForwardPlan>(num_tokens, 0),
                               static_cast<cudaStream_t>(stream));
  });
  check_launch("short_attention");
}

extern "C" LOCKSTEP_EXPORT void lockstep_cuda_short_attention_backward(
    const ShortAttentionBackwardRequest* request, void* stream) {
  const ShortAttentionRequest& forward = request->forward;
  const int num_tokens = forward.num_tokens;
  const auto queue = static_cast<cudaStream_t>(stream);
  with_half(forward.type, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    launch_kernel<QueriesPlan>(attention_d_queries<T, QueriesPlan>, *request,
                               num_tokens, heads_of_all(forward),
                               shared_bytes<QueriesPlan>(num_tokens, 1), queue);
    launch_kernel<KeysPlan>(attention_d_keys_values<T, KeysPlan>, *request,
                            num_tokens, heads_of_all(forward),
                            d_keys_values_bytes(num_tokens), queue);
  });
  check_launch("short_attention_backward");
  if (request->d_bias == nullptr) return;
  add_column_sums(request->partial_sums, request->d_bias,
                  int64_t{3} * forward.num_heads * kSize, forward.num_samples,
                  queue);
}

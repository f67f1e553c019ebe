// The backward side of short_attention.cu. Scores are computed twice, once by
// the owners of queries and once by the owners of keys: no group of warps waits
// for another, and sums have one order.
#include "lockstep/export.h"
#include "lockstep/kernels/attention_columns.cuh"
#include "lockstep/kernels/attention_scores.cuh"
#include "lockstep/kernels/column_sums.cuh"

namespace {

using namespace lockstep::kernels;  // NOLINT: everything here is a kernel's.

// The fastest of those tried on an H200, at 256, 260 and 288 tokens.
using QueriesPlan = Plan<48, 3>;
using KeysPlan = Plan<96, 2>;

template <typename T>
__device__ Head<const T> d_out_head(
    const ShortAttentionBackwardRequest& request, const Place& place) {
  return {static_cast<const T*>(request.d_out), request.d_out_strides,
          place.sample, place.head};
}

template <typename T>
__device__ Head<T> gradient_head(const ShortAttentionBackwardRequest& request,
                                 const Place& place, int which) {
  return {static_cast<T*>(request.d_heads[which]), request.d_strides[which],
          place.sample, place.head};
}

// Shared memory: rows of two tensors, sums of columns for each warp, and what
// else a kernel keeps there.
template <typename T>
struct BackwardMemory {
  SharedRows<T> left;
  SharedRows<T> right;
  float* columns;

  __device__ BackwardMemory(uint4* memory, int num_padded)
      : left{reinterpret_cast<T*>(memory)},
        right{left.rows + num_padded * kSize},
        columns(reinterpret_cast<float*>(right.rows + num_padded * kSize)) {}
};

// This warp's part of the columns.
__device__ float* own_columns(float* columns) {
  return columns + static_cast<int>(threadIdx.x) / 32 * kSize;
}

template <typename T>
__device__ void store_gradient(const ShortAttentionBackwardRequest& request,
                               const Head<T>& to, float* columns, int first,
                               const Sums& sums) {
  const int num_tokens = request.forward.num_tokens;
  store_rows(to, first, num_tokens, sums);
  // Known to be the same in all threads: else addresses of matrices in the loop
  // around it would not be kept in uniform registers.
  if (request.d_bias != nullptr) add_columns(columns, sums, first, num_tokens);
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
        d_out(d_out_head<T>(request, place)),
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
__global__ void __launch_bounds__(kThreadsOfGroup, P::kBlocks)
    attention_d_queries(ShortAttentionBackwardRequest request) {
  extern __shared__ __align__(1024) uint4 memory[];
  const ShortAttentionRequest& forward = request.forward;
  const Place place(forward.num_heads);
  const int num_tokens = forward.num_tokens;
  const int num_padded = padded<P>(num_tokens);
  const BackwardMemory<T> shared(memory, num_padded);
  clear_columns(shared.columns, kColumnsOfBlock);
  copy_rows(shared.left, input_head<T>(forward, place, 1), num_tokens,
            num_padded);
  copy_rows(shared.right, input_head<T>(forward, place, 2), num_tokens,
            num_padded);
  const QueryReader<T> reader(request, place);
  QueryRows rows;
  reader.load(rows, 0);
  wait_for_copies();
  __syncthreads();
  const uint64_t keys = shared.left.matrix();
  const uint64_t values = shared.right.matrix();
  const Head<T> d_queries = gradient_head<T>(request, place, 0);
  float* columns = own_columns(shared.columns);
  for (int row = 0; row < num_tokens; row += kRowsOfGroup) {
    RowValues dots;
    take_dots<T>(dots, rows, request.dots + int64_t{blockIdx.x} * num_tokens,
                 row, num_tokens);
    Sums sums = {};
    for (int first = 0; first < num_tokens; first += P::kStep) {
      const uint64_t offset = matrix_offset(first * kRowBytes);
      Scores<P> scores;
      Scores<P> d_weights;
      settle(rows.queries, rows.d_out);
      begin_products();
      start_scores<P, T>(scores, rows.queries, keys + offset);
      start_scores<P, T>(d_weights, rows.d_out, values + offset);
      wait_for_products();
      settle(scores, d_weights);
      if (first + P::kStep > num_tokens) {
        mask_columns<P>(scores, num_tokens - first);
      }
      backward_of_rows<P>(scores, d_weights, rows.log_sums, dots);
      Weights<P> weights;
      round_weights<P, T>(weights, scores);
      settle(weights);
      begin_products();
      start_weighted<P, T>(sums, weights, keys + offset);
      wait_for_products();
      settle(sums);
    }
    reader.load(rows, row + kRowsOfGroup);
    scale_sums(sums, kScale);
    store_gradient(request, d_queries, columns, row, sums);
  }
  if (request.d_bias == nullptr) return;
  __syncthreads();
  store_columns(request, shared.columns, 0);
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
  for (int i = threadIdx.x; i < padded<P>(num_tokens); i += kThreadsOfGroup) {
    const bool is_there = i < num_tokens;
    const int64_t from = offset + (is_there ? i : 0);
    copy_async(to.log_sums + i, request.forward.log_sums + from, is_there);
    copy_async(to.dots + i, request.dots + from, is_there);
  }
}

template <class P, typename T>
__device__ void copy_queries(const BackwardMemory<T>& to,
                             const QueryValues& values,
                             const ShortAttentionBackwardRequest& request,
                             const Place& place) {
  const int num_tokens = request.forward.num_tokens;
  copy_rows(to.left, input_head<T>(request.forward, place, 0), num_tokens,
            padded<P>(num_tokens));
  copy_rows(to.right, d_out_head<T>(request, place), num_tokens,
            padded<P>(num_tokens));
  copy_query_values<P>(values, request);
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
__global__ void __launch_bounds__(kThreadsOfGroup, P::kBlocks)
    attention_d_keys_values(ShortAttentionBackwardRequest request) {
  extern __shared__ __align__(1024) uint4 memory[];
  const Place place(request.forward.num_heads);
  const int num_tokens = request.forward.num_tokens;
  const BackwardMemory<T> shared(memory, padded<P>(num_tokens));
  float* d_keys_columns = shared.columns + kColumnsOfBlock;
  const QueryValues query_values{
      .log_sums = d_keys_columns + kColumnsOfBlock,
      .dots = d_keys_columns + kColumnsOfBlock + padded<P>(num_tokens)};
  clear_columns(shared.columns, 2 * kColumnsOfBlock);
  copy_queries<P>(shared, query_values, request, place);
  const Head<const T> keys_head = input_head<T>(request.forward, place, 1);
  const Head<const T> values_head = input_head<T>(request.forward, place, 2);
  Rows keys, values;
  load_rows(keys, keys_head, 0, num_tokens);
  load_rows(values, values_head, 0, num_tokens);
  wait_for_copies();
  __syncthreads();
  const uint64_t queries = shared.left.matrix();
  const uint64_t d_out = shared.right.matrix();
  const Head<T> d_keys_head = gradient_head<T>(request, place, 1);
  const Head<T> d_values_head = gradient_head<T>(request, place, 2);
  float* own_d_keys = own_columns(d_keys_columns);
  float* own_d_values = own_columns(shared.columns);
  for (int row = 0; row < num_tokens; row += kRowsOfGroup) {
    Sums d_keys = {}, d_values = {};
    for (int first = 0; first < num_tokens; first += P::kStep) {
      const uint64_t offset = matrix_offset(first * kRowBytes);
      Scores<P> scores, d_weights;
      settle(keys, values);
      begin_products();
      start_scores<P, T>(scores, keys, queries + offset);
      start_scores<P, T>(d_weights, values, d_out + offset);
      wait_for_products();
      settle(scores, d_weights);
      backward_of_columns<P>(scores, d_weights, query_values, first);
      Weights<P> weights, d_scores;
      round_weights<P, T>(weights, scores);
      round_weights<P, T>(d_scores, d_weights);
      settle(weights, d_scores);
      begin_products();
      start_weighted<P, T>(d_values, weights, d_out + offset);
      start_weighted<P, T>(d_keys, d_scores, queries + offset);
      wait_for_products();
      settle(d_values, d_keys);
    }
    load_rows(keys, keys_head, row + kRowsOfGroup, num_tokens);
    load_rows(values, values_head, row + kRowsOfGroup, num_tokens);
    scale_sums(d_keys, kScale);
    store_gradient(request, d_keys_head, own_d_keys, row, d_keys);
    store_gradient(request, d_values_head, own_d_values, row, d_values);
  }
  if (request.d_bias == nullptr) return;
  __syncthreads();
  store_columns(request, d_keys_columns, 1);
  store_columns(request, shared.columns, 2);
}

int d_keys_values_bytes(int num_tokens) {
  return shared_bytes<KeysPlan>(num_tokens, 2) +
         2 * padded<KeysPlan>(num_tokens) * static_cast<int>(sizeof(float));
}

}  // namespace

// Launch on a stream of the current device.
extern "C" LOCKSTEP_EXPORT void lockstep_cuda_short_attention_backward(
    const ShortAttentionBackwardRequest* request, void* stream) {
  const ShortAttentionRequest& forward = request->forward;
  const int num_tokens = forward.num_tokens;
  const auto queue = static_cast<cudaStream_t>(stream);
  with_half(forward.type, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    launch_kernel(attention_d_queries<T, QueriesPlan>, *request,
                  heads_of_all(forward),
                  shared_bytes<QueriesPlan>(num_tokens, 1), queue);
    launch_kernel(attention_d_keys_values<T, KeysPlan>, *request,
                  heads_of_all(forward), d_keys_values_bytes(num_tokens),
                  queue);
  });
  check_launch("short_attention_backward");
  if (request->d_bias == nullptr) return;
  add_column_sums(request->partial_sums, request->d_bias,
                  int64_t{3} * forward.num_heads * kSize, forward.num_samples,
                  queue);
}

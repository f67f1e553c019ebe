// The CUDA side of short_attention.cpp; part of liblockstep_cuda. No torch
// header: this file compiles in seconds.
//
// A block computes one head of one sample: what all its rows need lies in its
// shared memory, and each group of warps owns tiles of rows, whose results it
// keeps in registers.
#include "lockstep/export.h"
#include "lockstep/kernels/attention_scores.cuh"

namespace {

using namespace lockstep::kernels;  // NOLINT: everything here is a kernel's.

// The fastest of those tried on an H200, at 256, 260 and 288 tokens.
using ForwardPlan = Plan<96, 3>;

// Weights are at most 2 to the power of this before they are divided by their
// sum.
constexpr float kHeadroomLog2 = 8.0f;

__device__ float max_of_row(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
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

template <typename T, class P>
__global__ void __launch_bounds__(kThreadsOfGroup, P::kBlocks)
    attention(ShortAttentionRequest request) {
  extern __shared__ __align__(1024) uint4 memory[];
  const Place place(request.num_heads);
  const int num_tokens = request.num_tokens;
  const SharedRows<T> keys{reinterpret_cast<T*>(memory)};
  const SharedRows<T> values{keys.rows + padded<P>(num_tokens) * kSize};
  copy_rows(keys, input_head<T>(request, place, 1), num_tokens,
            padded<P>(num_tokens));
  copy_rows(values, input_head<T>(request, place, 2), num_tokens,
            padded<P>(num_tokens));
  const Head<const T> queries_head = input_head<T>(request, place, 0);
  Rows queries;
  load_rows(queries, queries_head, 0, num_tokens);
  wait_for_copies();
  __syncthreads();
  const uint64_t keys_matrix = keys.matrix();
  const uint64_t values_matrix = values.matrix();
  const Head<T> out_head(static_cast<T*>(request.out), out_strides(request),
                         place.sample, place.head);
  float* log_sums = request.log_sums + int64_t{blockIdx.x} * num_tokens;
  for (int row = 0; row < num_tokens; row += kRowsOfGroup) {
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
    load_rows(queries, queries_head, row + kRowsOfGroup, num_tokens);
    finish_softmax(state, out, log_sums, row, num_tokens);
    store_rows(out_head, row, num_tokens, out);
  }
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
    launch_kernel(attention<T, ForwardPlan>, *request, heads_of_all(*request),
                  shared_bytes<ForwardPlan>(num_tokens, 0),
                  static_cast<cudaStream_t>(stream));
  });
  check_launch("short_attention");
}

// What the forward and backward kernels of adaln_residual share: how a row of
// channels is spread over threads.
#pragma once

#include "lockstep/kernels/adaln_residual_request.h"
#include "lockstep/kernels/element.cuh"
#include "lockstep/kernels/vector.cuh"
#include "lockstep/kernels/warp.cuh"

namespace lockstep::kernels {

constexpr int kAdaLnWarps = 8;
constexpr int kAdaLnThreads = kAdaLnWarps * kWarp;

// Four channels, at most this many times per thread: more would not fit into
// the registers that two blocks of an SM share.
constexpr int kFours = 3;

// A row is held by kWarps warps.
template <int kWarps>
struct RowLayout {
  static constexpr int kRowsPerBlock = kAdaLnWarps / kWarps;

  // Index of the row among those that the block holds at a time.
  __device__ static int row() { return threadIdx.x / kWarp / kWarps; }
  __device__ static int column(int four) {
    const int warp = threadIdx.x / kWarp % kWarps;
    return ((four * kWarps + warp) * kWarp + threadIdx.x % kWarp) * 4;
  }

  // The sum over a row's threads, in a fixed order. All threads of the block
  // call it; scratch: kAdaLnWarps numbers that no other call uses before a
  // __syncthreads().
  __device__ static float sum(float value, float* scratch) {
    value = sum_of_warp(value);
    if constexpr (kWarps == 1) return value;
    if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = value;
    __syncthreads();
    float total = 0;
    for (int i = 0; i < kWarps; ++i) total += scratch[row() * kWarps + i];
    return total;
  }
};

// Calls function(layout, element) with those of the request, a RowLayout and a
// null pointer to the element type.
template <typename Function>
void with_layout(const AdaLnArguments& arguments, Function function) {
  const auto run = [&](auto layout) {
    with_element(arguments.type,
                 [&](auto* element) { function(layout, element); });
  };
  constexpr int64_t kWidth = kFours * 4 * kWarp;
  if (arguments.size <= kWidth) return run(RowLayout<1>());
  if (arguments.size <= 2 * kWidth) return run(RowLayout<2>());
  if (arguments.size <= 4 * kWidth) return run(RowLayout<4>());
  return run(RowLayout<8>());
}

// A sample's row of gate, shift or scale; null when there is none.
template <typename T>
__device__ inline const T* row_of(const SampleRows& rows, int64_t sample) {
  if (rows.data == nullptr) return nullptr;
  return static_cast<const T*>(rows.data) + sample * rows.stride;
}

// Four neighbours of an optional row.
template <typename T>
__device__ inline void load_or(float (&out)[4], const T* row, int column,
                               float otherwise) {
  for (float& value : out) value = otherwise;
  if (row != nullptr) load_pack(out, row + column);
}

__device__ inline void load_weight(float (&out)[4],
                                   const AdaLnArguments& arguments,
                                   int column) {
  if (arguments.has_scalar_weight) {
    for (float& value : out) value = *arguments.weight;
  } else {
    load_or(out, arguments.weight, column, 1);
  }
}

}  // namespace lockstep::kernels

// The forward kernel of adaln_residual.cpp; part of liblockstep_cuda. No torch
// header: this file compiles in seconds.
#include "lockstep/export.h"
#include "lockstep/kernels/adaln_residual.cuh"

namespace {

using namespace lockstep::kernels;  // NOLINT: everything here is a kernel's.

// Loads a thread's part of a row, adds the branch, and stores the sum.
template <typename T, typename Layout>
__device__ void load_sum(const AdaLnForwardRequest& request, int64_t row,
                         int64_t sample, float (&value)[kFours][4]) {
  const AdaLnArguments& arguments = request.arguments;
  const int size = static_cast<int>(arguments.size);
  const int64_t offset = row * size;
  const T* gate = row_of<T>(arguments.gate, sample);
  for (int i = 0; i < kFours; ++i) {
    const int column = Layout::column(i);
    if (column >= size) continue;
    load_pack(value[i], request.x + offset + column);
    if (arguments.branch == nullptr) continue;
    float branch[4], bias[4], gain[4];
    load_pack(branch,
              static_cast<const T*>(arguments.branch) + offset + column);
    load_or(bias, arguments.branch_bias, column, 0);
    load_or(gain, gate, column, 1);
    for (int k = 0; k < 4; ++k) value[i][k] += gain[k] * (branch[k] + bias[k]);
    store_pack(request.sum + offset + column, value[i]);
  }
}

// Scales, modulates and stores what is normalised.
template <typename T, typename Layout>
__device__ void store_normed(const AdaLnForwardRequest& request, int64_t row,
                             int64_t sample, float (&value)[kFours][4],
                             float rstd) {
  const AdaLnArguments& arguments = request.arguments;
  const int size = static_cast<int>(arguments.size);
  const T* shift = row_of<T>(arguments.shift, sample);
  const T* scale = row_of<T>(arguments.scale, sample);
  for (int i = 0; i < kFours; ++i) {
    const int column = Layout::column(i);
    if (column >= size) continue;
    float weight[4], bias[4], add[4], gain[4];
    load_weight(weight, arguments, column);
    load_or(bias, arguments.bias, column, 0);
    load_or(add, shift, column, 0);
    load_or(gain, scale, column, 0);
    for (int k = 0; k < 4; ++k) {
      const float normed = value[i][k] * rstd * weight[k] + bias[k];
      value[i][k] = normed * (1 + gain[k]) + add[k];
    }
    store_pack(static_cast<T*>(request.normed) + row * size + column, value[i]);
  }
}

template <typename T, typename Layout>
__global__ void __launch_bounds__(kAdaLnThreads)
    adaln_residual(AdaLnForwardRequest request) {
  __shared__ float scratch[2][kAdaLnWarps];
  const AdaLnArguments& arguments = request.arguments;
  const int size = static_cast<int>(arguments.size);
  const int64_t row =
      int64_t{blockIdx.x} * Layout::kRowsPerBlock + Layout::row();
  const bool is_row = row < arguments.batch * arguments.count;
  const int64_t sample = is_row ? row / arguments.count : 0;
  float value[kFours][4] = {};
  if (is_row) load_sum<T, Layout>(request, row, sample, value);

  const float inverse_size = 1.0f / static_cast<float>(size);
  float mean = 0;
  if (arguments.kind == NormKind::kLayer) {
    float total = 0;
    for (const auto& four : value) {
      for (const float x : four) total += x;
    }
    mean = Layout::sum(total, scratch[0]) * inverse_size;
  }
  float squares = 0;
  for (int i = 0; i < kFours; ++i) {
    if (Layout::column(i) >= size) continue;
    for (float& x : value[i]) {
      x -= mean;
      squares += x * x;
    }
  }
  const float rstd =
      rsqrtf(Layout::sum(squares, scratch[1]) * inverse_size + arguments.eps);
  if (!is_row) return;
  if (Layout::column(0) == 0) {
    request.rstd[row] = rstd;
    if (request.mean != nullptr) request.mean[row] = mean;
  }
  store_normed<T, Layout>(request, row, sample, value, rstd);
}

}  // namespace

// Launches the kernel on a stream of the current device.
extern "C" LOCKSTEP_EXPORT void lockstep_cuda_adaln_residual(
    const AdaLnForwardRequest* request, void* stream) {
  with_layout(request->arguments, [&](auto layout, auto* element) {
    using Layout = decltype(layout);
    using T = std::remove_pointer_t<decltype(element)>;
    const int64_t rows = request->arguments.batch * request->arguments.count;
    const int64_t blocks =
        (rows + Layout::kRowsPerBlock - 1) / Layout::kRowsPerBlock;
    adaln_residual<T, Layout><<<static_cast<unsigned>(blocks), kAdaLnThreads, 0,
                                static_cast<cudaStream_t>(stream)>>>(*request);
  });
  check_launch("adaln_residual");
}

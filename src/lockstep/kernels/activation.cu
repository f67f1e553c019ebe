// The CUDA side of activation.cpp; part of liblockstep_cuda. No torch header:
// this file compiles in seconds.
#include "lockstep/export.h"
#include "lockstep/kernels/activation_request.h"
#include "lockstep/kernels/element.cuh"
#include "lockstep/kernels/vector.cuh"

namespace {

using namespace lockstep::kernels;  // NOLINT: everything here is a kernel's.

// 32 threads hold 128 neighbouring columns, 8 rows of threads walk the rows.
constexpr int kColumns = 32;
constexpr int kRows = 8;

__device__ float sigmoid(float x) { return __fdividef(1, 1 + __expf(-x)); }

// The derivative of GELU's tanh form needs the same tanh.
__device__ float gelu_tanh_inner(float x) {
  constexpr float kRoot = 0.7978845608028654f;  // sqrt(2 / pi)
  // tanh; its absolute error is what counts, and tanhf() is slow.
  return 1 - __fdividef(2, 1 + __expf(2 * kRoot * x * (1 + 0.044715f * x * x)));
}

template <ActivationKind kKind>
__device__ float activate(float x) {
  if constexpr (kKind == ActivationKind::kGelu) {
    return x * normcdff(x);
  } else if constexpr (kKind == ActivationKind::kGeluTanh) {
    return 0.5f * x * (1 + gelu_tanh_inner(x));
  } else {
    return x * sigmoid(x);
  }
}

template <ActivationKind kKind>
__device__ float slope(float x) {
  if constexpr (kKind == ActivationKind::kGelu) {
    constexpr float kDensity = 0.3989422804014327f;  // 1 / sqrt(2 pi)
    return normcdff(x) + x * kDensity * __expf(-0.5f * x * x);
  } else if constexpr (kKind == ActivationKind::kGeluTanh) {
    constexpr float kRoot = 0.7978845608028654f;
    const float t = gelu_tanh_inner(x);
    const float inner = kRoot * (1 + 3 * 0.044715f * x * x);
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * inner;
  } else {
    const float s = sigmoid(x);
    return s * (1 + x * (1 - s));
  }
}

// Four values with their bias.
template <typename T>
__device__ void load_biased(float (&out)[4], const T* row, const float* bias,
                            int64_t column) {
  load_pack(out, row + column);
  if (bias == nullptr) return;
  float add[4];
  load_pack(add, bias + column);
  for (int k = 0; k < 4; ++k) out[k] += add[k];
}

template <typename T, ActivationKind kKind>
__global__ void activation(ActivationRequest request) {
  constexpr bool kIsPair = kKind == ActivationKind::kSwiGlu;
  // 32 bits: a division of 64 takes longer than the rest.
  const unsigned fours = static_cast<unsigned>(request.size / 4);
  const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t row = index / fours;
  const int64_t column = index % fours * 4;
  if (row >= request.rows) return;
  const int64_t size = request.size;
  const T* input =
      static_cast<const T*>(request.input) + row * (kIsPair ? 2 : 1) * size;
  float value[4];
  load_biased(value, input, request.bias, column);
  if constexpr (kIsPair) {
    float other[4];
    load_biased(other, input, request.bias, size + column);
    for (int k = 0; k < 4; ++k) value[k] = activate<kKind>(value[k]) * other[k];
  } else {
    for (float& x : value) x = activate<kKind>(x);
  }
  store_pack(static_cast<T*>(request.out) + row * size + column, value);
}

// The block's sum of a column over its rows of threads, in their order.
__device__ void store_column_sums(const float (&values)[4], int64_t column,
                                  bool is_column, float* out) {
  __shared__ float scratch[kRows][4 * kColumns];
  __syncthreads();
  store_pack(&scratch[threadIdx.y][4 * threadIdx.x], values);
  __syncthreads();
  if (threadIdx.y != 0 || !is_column) return;
  float total[4] = {};
  for (int row = 0; row < kRows; ++row) {
    for (int k = 0; k < 4; ++k) total[k] += scratch[row][4 * threadIdx.x + k];
  }
  store_pack(out + column, total);
}

template <typename T, ActivationKind kKind>
__global__ void __launch_bounds__(kColumns* kRows)
    activation_backward(ActivationRequest request, int64_t rows_per_block) {
  constexpr bool kIsPair = kKind == ActivationKind::kSwiGlu;
  const int64_t size = request.size;
  const int64_t width = kIsPair ? 2 * size : size;
  const int64_t column = (int64_t{blockIdx.x} * kColumns + threadIdx.x) * 4;
  const bool is_column = column < size;
  const int64_t begin = int64_t{blockIdx.y} * rows_per_block;
  const int64_t end = min(begin + rows_per_block, request.rows);
  float sum[4] = {};
  float other_sum[4] = {};
  for (int64_t row = begin + threadIdx.y; is_column && row < end;
       row += kRows) {
    const T* input = static_cast<const T*>(request.input) + row * width;
    T* d_input = static_cast<T*>(request.d_input) + row * width;
    float x[4], d[4];
    load_biased(x, input, request.bias, column);
    load_pack(d, static_cast<const T*>(request.d_out) + row * size + column);
    if constexpr (kIsPair) {
      float other[4], d_other[4];
      load_biased(other, input, request.bias, size + column);
      for (int k = 0; k < 4; ++k) {
        const float s = sigmoid(x[k]);
        d_other[k] = d[k] * x[k] * s;
        d[k] *= other[k] * s * (1 + x[k] * (1 - s));
        other_sum[k] += d_other[k];
      }
      store_pack(d_input + size + column, d_other);
    } else {
      for (int k = 0; k < 4; ++k) d[k] *= slope<kKind>(x[k]);
    }
    for (int k = 0; k < 4; ++k) sum[k] += d[k];
    store_pack(d_input + column, d);
  }
  if (request.d_bias == nullptr) return;
  float* out = request.partial_sums + int64_t{blockIdx.y} * width;
  store_column_sums(sum, column, is_column, out);
  if constexpr (kIsPair) {
    store_column_sums(other_sum, size + column, is_column, out);
  }
}

// Adds the blocks' sums in order.
__global__ void finish_bias(ActivationRequest request, int64_t width,
                            int num_blocks) {
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= width) return;
  float total = 0;
#pragma unroll 8
  for (int block = 0; block < num_blocks; ++block) {
    total += request.partial_sums[block * width + column];
  }
  request.d_bias[column] = total;
}

// Calls function(element, kind as a constant).
template <typename Function>
void with_kind(const ActivationRequest& request, Function function) {
  with_element(request.type, [&](auto* element) {
    using Kind = ActivationKind;
    switch (request.kind) {
      case Kind::kGelu:
        return function(element, std::integral_constant<Kind, Kind::kGelu>());
      case Kind::kGeluTanh:
        return function(element,
                        std::integral_constant<Kind, Kind::kGeluTanh>());
      case Kind::kSilu:
        return function(element, std::integral_constant<Kind, Kind::kSilu>());
      case Kind::kSwiGlu:
        return function(element, std::integral_constant<Kind, Kind::kSwiGlu>());
    }
  });
}

}  // namespace

// Launch on a stream of the current device.
extern "C" LOCKSTEP_EXPORT void lockstep_cuda_activation(
    const ActivationRequest* request, void* stream) {
  constexpr int kThreads = 256;
  const int64_t count = request->rows * request->size / 4;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  with_kind(*request, [&](auto* element, auto kind) {
    using T = std::remove_pointer_t<decltype(element)>;
    activation<T, decltype(kind)::value>
        <<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(*request);
  });
  check_launch("activation");
}

extern "C" LOCKSTEP_EXPORT void lockstep_cuda_activation_backward(
    const ActivationRequest* request, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const int64_t blocks = activation_blocks(request->rows);
  const int64_t columns = 4 * kColumns;
  const dim3 grid(
      static_cast<unsigned>((request->size + columns - 1) / columns),
      static_cast<unsigned>(blocks));
  with_kind(*request, [&](auto* element, auto kind) {
    using T = std::remove_pointer_t<decltype(element)>;
    activation_backward<T, decltype(kind)::value>
        <<<grid, dim3(kColumns, kRows), 0, queue>>>(
            *request, (request->rows + blocks - 1) / blocks);
  });
  check_launch("activation_backward");
  if (request->d_bias == nullptr) return;
  const int64_t width = request->kind == ActivationKind::kSwiGlu
                            ? 2 * request->size
                            : request->size;
  constexpr int kThreads = 128;
  finish_bias<<<static_cast<unsigned>((width + kThreads - 1) / kThreads),
                kThreads, 0, queue>>>(*request, width,
                                      static_cast<int>(blocks));
  check_launch("activation_backward");
}

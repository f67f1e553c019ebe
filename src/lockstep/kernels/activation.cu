// The CUDA side of activation.cpp; part of liblockstep_cuda. No torch header:
// this file compiles in seconds.
#include "lockstep/export.h"
#include "lockstep/kernels/activation_request.h"
#include "lockstep/kernels/column_sums.cuh"

namespace {

using namespace lockstep::kernels;  // NOLINT: everything here is a kernel's.

// Neighbouring columns of a thread: 16 bytes in half precision.
constexpr int kPack = 8;

__device__ float sigmoid(float x) { return __fdividef(1, 1 + __expf(-x)); }

// GELU's tanh form is x * sigmoid(2 u(x)), u(x) = sqrt(2 / pi) (x + 0.044715
// x^3): no tanh, and no difference of nearly equal numbers.
constexpr float kTwoRoot = 1.5957691216057308f;  // 2 sqrt(2 / pi)
constexpr float kTwoRootCubic = 0.044715f * kTwoRoot;

template <ActivationKind kKind>
__device__ float activate(float x) {
  if constexpr (kKind == ActivationKind::kGelu) {
    return x * normcdff(x);
  } else if constexpr (kKind == ActivationKind::kGeluTanh) {
    return x * sigmoid(x * (kTwoRoot + kTwoRootCubic * x * x));
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
    const float square = x * x;
    const float s = sigmoid(x * (kTwoRoot + kTwoRootCubic * square));
    return s * (1 + x * (kTwoRoot + 3 * kTwoRootCubic * square) * (1 - s));
  } else {
    const float s = sigmoid(x);
    return s * (1 + x * (1 - s));
  }
}

// A pack of values with their bias.
template <typename T>
__device__ void load_biased(float (&out)[kPack], const T* row,
                            const float* bias, int64_t column) {
  load_pack(out, row + column);
  if (bias == nullptr) return;
  float add[kPack];
  load_pack(add, bias + column);
  for (int k = 0; k < kPack; ++k) out[k] += add[k];
}

template <typename T, ActivationKind kKind>
__global__ void activation(ActivationRequest request) {
  constexpr bool kIsPair = kKind == ActivationKind::kSwiGlu;
  // 32 bits: a division of 64 takes longer than the rest.
  const unsigned packs = static_cast<unsigned>(request.size / kPack);
  const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t row = index / packs;
  const int64_t column = index % packs * kPack;
  if (row >= request.rows) return;
  const int64_t size = request.size;
  const T* input =
      static_cast<const T*>(request.input) + row * (kIsPair ? 2 : 1) * size;
  float value[kPack];
  load_biased(value, input, request.bias, column);
  if constexpr (kIsPair) {
    float other[kPack];
    load_biased(other, input, request.bias, size + column);
    for (int k = 0; k < kPack; ++k)
      value[k] = activate<kKind>(value[k]) * other[k];
  } else {
    for (float& x : value) x = activate<kKind>(x);
  }
  store_pack(static_cast<T*>(request.out) + row * size + column, value);
}

// What a thread reads of a row in backward.
template <typename T>
struct BackwardRow {
  Pack<T, kPack> input;
  Pack<T, kPack> other;  // kSwiGlu: b.
  Pack<T, kPack> d_out;
};

template <typename T>
__device__ Pack<T, kPack> load_raw(const T* from) {
  return *reinterpret_cast<const Pack<T, kPack>*>(from);
}

// Per column: biases, and sums of the gradients. kSwiGlu: other is b.
struct ColumnValues {
  float bias[kPack] = {};
  float other_bias[kPack] = {};
  float sum[kPack] = {};
  float other_sum[kPack] = {};
};

template <ActivationKind kKind, typename T>
__device__ void backward_of_row(const BackwardRow<T>& row,
                                ColumnValues& columns, T* d_input,
                                int64_t size) {
  constexpr bool kIsPair = kKind == ActivationKind::kSwiGlu;
  float d[kPack];
  float d_other[kPack];
  for (int k = 0; k < kPack; ++k) {
    const float x = static_cast<float>(row.input.v[k]) + columns.bias[k];
    d[k] = static_cast<float>(row.d_out.v[k]);
    if constexpr (kIsPair) {
      const float other =
          static_cast<float>(row.other.v[k]) + columns.other_bias[k];
      const float s = sigmoid(x);
      d_other[k] = d[k] * x * s;
      d[k] *= other * s * (1 + x * (1 - s));
      columns.other_sum[k] += d_other[k];
    } else {
      d[k] *= slope<kKind>(x);
    }
    columns.sum[k] += d[k];
  }
  store_pack(d_input, d);
  if constexpr (kIsPair) store_pack(d_input + size, d_other);
}

template <typename T, ActivationKind kKind>
__global__ void __launch_bounds__(kColumnThreads* kRowThreads)
    activation_backward(ActivationRequest request, int64_t rows_per_block) {
  constexpr bool kIsPair = kKind == ActivationKind::kSwiGlu;
  // Rows that are loaded before the first is stored: loads wait long.
  constexpr int kRowsAtOnce = 2;
  const int64_t size = request.size;
  const int64_t width = kIsPair ? 2 * size : size;
  const int64_t column =
      (int64_t{blockIdx.x} * kColumnThreads + threadIdx.x) * kPack;
  const bool is_column = column < size;
  const int64_t begin = int64_t{blockIdx.y} * rows_per_block;
  const int64_t end = min(begin + rows_per_block, request.rows);
  ColumnValues columns;
  if (request.bias != nullptr && is_column) {
    load_pack(columns.bias, request.bias + column);
    if constexpr (kIsPair) {
      load_pack(columns.other_bias, request.bias + size + column);
    }
  }
  for (int64_t first = begin + threadIdx.y; is_column && first < end;
       first += kRowThreads * kRowsAtOnce) {
    BackwardRow<T> rows[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const int64_t row = first + i * kRowThreads;
      if (row >= end) break;
      const T* input =
          static_cast<const T*>(request.input) + row * width + column;
      rows[i].input = load_raw(input);
      if constexpr (kIsPair) rows[i].other = load_raw(input + size);
      rows[i].d_out =
          load_raw(static_cast<const T*>(request.d_out) + row * size + column);
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const int64_t row = first + i * kRowThreads;
      if (row >= end) break;
      T* d_input = static_cast<T*>(request.d_input) + row * width + column;
      backward_of_row<kKind>(rows[i], columns, d_input, size);
    }
  }
  if (request.d_bias == nullptr) return;
  float* out = request.partial_sums + int64_t{blockIdx.y} * width;
  store_column_sums(columns.sum, column, is_column, out);
  if constexpr (kIsPair) {
    store_column_sums(columns.other_sum, size + column, is_column, out);
  }
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
  const int64_t count = request->rows * request->size / kPack;
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
  const int64_t columns = kPack * kColumnThreads;
  const dim3 grid(
      static_cast<unsigned>((request->size + columns - 1) / columns),
      static_cast<unsigned>(blocks));
  with_kind(*request, [&](auto* element, auto kind) {
    using T = std::remove_pointer_t<decltype(element)>;
    activation_backward<T, decltype(kind)::value>
        <<<grid, dim3(kColumnThreads, kRowThreads), 0, queue>>>(
            *request, (request->rows + blocks - 1) / blocks);
  });
  check_launch("activation_backward");
  if (request->d_bias == nullptr) return;
  const int64_t width = request->kind == ActivationKind::kSwiGlu
                            ? 2 * request->size
                            : request->size;
  add_column_sums(request->partial_sums, request->d_bias, width, blocks, queue);
}

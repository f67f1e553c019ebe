// The CUDA side of qkv_heads.cpp; part of liblockstep_cuda. No torch header:
// this file compiles in seconds.
#include "lockstep/export.h"
#include "lockstep/kernels/column_sums.cuh"
#include "lockstep/kernels/qkv_heads_request.h"

namespace {

using namespace lockstep::kernels;  // NOLINT: everything here is a kernel's.

constexpr int kPack = 8;
// Rows that are loaded before the first is stored: loads wait long.
constexpr int kRowsAtOnce = 4;

// A thread keeps its columns: one head of queries, keys or values.
template <typename T>
__global__ void __launch_bounds__(kColumnThreads* kRowThreads)
    qkv_gradient(QkvGradientRequest request, int64_t rows_per_block) {
  const int part_width = request.num_heads * request.size;
  const int width = 3 * part_width;
  const int column = (blockIdx.x * kColumnThreads + threadIdx.x) * kPack;
  const bool is_column = column < width;
  const int which = is_column ? column / part_width : 0;
  const HeadStrides strides = which == 0   ? request.strides[0]
                              : which == 1 ? request.strides[1]
                                           : request.strides[2];
  const void* d_heads = which == 0   ? request.d_heads[0]
                        : which == 1 ? request.d_heads[1]
                                     : request.d_heads[2];
  const int in_part = column - which * part_width;
  const T* from = static_cast<const T*>(d_heads) +
                  in_part / request.size * strides.head +
                  in_part % request.size;
  T* to = static_cast<T*>(request.d_qkv) + column;
  const int64_t rows = request.num_samples * request.num_tokens;
  const int64_t begin = int64_t{blockIdx.y} * rows_per_block;
  const int64_t end = min(begin + rows_per_block, rows);
  // 32 bits: a division of 64 takes longer than the rest.
  const auto num_tokens = static_cast<unsigned>(request.num_tokens);
  float sum[kPack] = {};
  for (int64_t first = begin + threadIdx.y; is_column && first < end;
       first += kRowThreads * kRowsAtOnce) {
    Pack<T, kPack> rows_read[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const int64_t row = first + i * kRowThreads;
      if (row >= end) break;
      const unsigned sample = static_cast<unsigned>(row) / num_tokens;
      const unsigned token = static_cast<unsigned>(row) % num_tokens;
      rows_read[i] = *reinterpret_cast<const Pack<T, kPack>*>(
          from + sample * strides.sample + token * strides.token);
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const int64_t row = first + i * kRowThreads;
      if (row >= end) break;
      for (int k = 0; k < kPack; ++k) {
        sum[k] += static_cast<float>(rows_read[i].v[k]);
      }
      *reinterpret_cast<Pack<T, kPack>*>(to + row * width) = rows_read[i];
    }
  }
  if (request.d_bias == nullptr) return;
  store_column_sums(sum, column, is_column,
                    request.partial_sums + int64_t{blockIdx.y} * width);
}

}  // namespace

// Launch on a stream of the current device.
extern "C" LOCKSTEP_EXPORT void lockstep_cuda_qkv_gradient(
    const QkvGradientRequest* request, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const int64_t rows = request->num_samples * request->num_tokens;
  const int64_t blocks = qkv_gradient_blocks(rows);
  const int64_t width = int64_t{3} * request->num_heads * request->size;
  const int64_t columns = kPack * kColumnThreads;
  const dim3 grid(static_cast<unsigned>((width + columns - 1) / columns),
                  static_cast<unsigned>(blocks));
  with_element(request->type, [&](auto* element) {
    qkv_gradient<std::remove_pointer_t<decltype(element)>>
        <<<grid, dim3(kColumnThreads, kRowThreads), 0, queue>>>(
            *request, (rows + blocks - 1) / blocks);
  });
  check_launch("qkv_gradient");
  if (request->d_bias == nullptr) return;
  add_column_sums(request->partial_sums, request->d_bias, width, blocks, queue);
}

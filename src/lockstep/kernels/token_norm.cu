// The CUDA side of token_norm.cpp; part of liblockstep_cuda. No torch header:
// this file compiles in seconds.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "lockstep/export.h"
#include "lockstep/kernels/token_norm_request.h"
#include "lockstep/kernels/warp.cuh"

namespace {

using lockstep::kernels::HalfType;
using lockstep::kernels::TokenNormRequest;

using lockstep::kernels::kWarp;
using lockstep::kernels::sum_of_warp;

constexpr int kRowsPerBlock = 4;

template <typename Half>
struct alignas(8) FourHalves {
  Half v[4];
};

// One warp per row. It reads the row three times, the last two from cache: mean
// and variance of rows far from zero need two passes.
template <typename Half>
__global__ void norm_rows(TokenNormRequest request) {
  const int lane = threadIdx.x % kWarp;
  const int64_t row = int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kWarp;
  if (row >= request.num_rows) return;
  const int count = static_cast<int>(request.size / 4);
  const auto* x = reinterpret_cast<const float4*>(request.x) + row * count;
  const auto* weight = static_cast<const FourHalves<Half>*>(request.weight);
  const auto* bias = static_cast<const FourHalves<Half>*>(request.bias);
  auto* out = static_cast<FourHalves<Half>*>(request.out) + row * count;
  const float scale = 1.0f / static_cast<float>(request.size);
  float sum = 0;
  for (int i = lane; i < count; i += kWarp) {
    const float4 value = x[i];
    sum += value.x + value.y + value.z + value.w;
  }
  const float mean = sum_of_warp(sum) * scale;
  sum = 0;
  for (int i = lane; i < count; i += kWarp) {
    const float4 value = x[i];
    const float a = value.x - mean;
    const float b = value.y - mean;
    const float c = value.z - mean;
    const float d = value.w - mean;
    sum += a * a + b * b + c * c + d * d;
  }
  const float inverse = rsqrtf(sum_of_warp(sum) * scale + request.eps);
  for (int i = lane; i < count; i += kWarp) {
    const float4 value = x[i];
    const float values[4] = {value.x, value.y, value.z, value.w};
    const FourHalves<Half> w = weight[i];
    const FourHalves<Half> b = bias[i];
    FourHalves<Half> result;
    for (int k = 0; k < 4; ++k) {
      const float normed = (values[k] - mean) * inverse;
      result.v[k] = static_cast<Half>(normed * static_cast<float>(w.v[k]) +
                                      static_cast<float>(b.v[k]));
    }
    out[i] = result;
  }
}

}  // namespace

// Launches the kernel on a stream of the current device.
extern "C" LOCKSTEP_EXPORT void lockstep_cuda_norm_tokens(
    const TokenNormRequest* request, void* stream) {
  const auto grid = static_cast<unsigned>(
      (request->num_rows + kRowsPerBlock - 1) / kRowsPerBlock);
  const auto queue = static_cast<cudaStream_t>(stream);
  if (request->type == HalfType::kFloat16) {
    norm_rows<__half><<<grid, kRowsPerBlock * kWarp, 0, queue>>>(*request);
  } else {
    norm_rows<__nv_bfloat16>
        <<<grid, kRowsPerBlock * kWarp, 0, queue>>>(*request);
  }
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string("CUDA error in a norm of tokens: ") +
                           cudaGetErrorString(status));
}

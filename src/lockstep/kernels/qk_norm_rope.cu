// The CUDA side of qk_norm_rope.cpp; part of liblockstep_cuda. No torch header:
// this file compiles in seconds.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "lockstep/export.h"
#include "lockstep/kernels/qk_norm_rope_request.h"
#include "lockstep/kernels/warp.cuh"

namespace {

using lockstep::kernels::HalfType;
using lockstep::kernels::QkNormRopeRequest;

using lockstep::kernels::kWarp;
using lockstep::kernels::sum_of_warp;

constexpr int kHeadsPerBlock = 8;
constexpr int kPairsPerLane = lockstep::kernels::kMaxRopeHeadSize / 2 / kWarp;

// One warp per head of a token's query or key; a lane holds both channels of
// the pairs that it rotates.
template <typename Half>
__global__ void norm_and_rotate(QkNormRopeRequest request) {
  const int lane = threadIdx.x % kWarp;
  const int64_t index =
      int64_t{blockIdx.x} * kHeadsPerBlock + threadIdx.x / kWarp;
  const int heads = request.num_heads;
  const int64_t token = index / (2 * heads);
  if (token >= request.num_tokens) return;
  const int within = static_cast<int>(index % (2 * heads));
  const int which = within / heads;
  const int size = request.size;
  const int quarter = size / 4;
  Half* x = static_cast<Half*>(request.qkv) +
            (token * 3 * heads + within) * static_cast<int64_t>(size);
  const int64_t position = token % request.num_positions * size;

  int channel[kPairsPerLane];
  float first[kPairsPerLane] = {};
  float second[kPairsPerLane] = {};
  float sum = 0;
  for (int i = 0; i < kPairsPerLane; ++i) {
    const int pair = lane + i * kWarp;
    channel[i] =
        pair < 2 * quarter ? pair / quarter * 2 * quarter + pair % quarter : -1;
    if (channel[i] < 0) continue;
    first[i] = static_cast<float>(x[channel[i]]);
    second[i] = static_cast<float>(x[channel[i] + quarter]);
    sum += first[i] + second[i];
  }
  const float mean = sum_of_warp(sum) / static_cast<float>(size);
  sum = 0;
  for (int i = 0; i < kPairsPerLane; ++i) {
    if (channel[i] < 0) continue;
    first[i] -= mean;
    second[i] -= mean;
    sum += first[i] * first[i] + second[i] * second[i];
  }
  const float inverse =
      rsqrtf(sum_of_warp(sum) / static_cast<float>(size) + request.eps[which]);
  const auto* weight = static_cast<const Half*>(request.weight[which]);
  const auto* bias = static_cast<const Half*>(request.bias[which]);
  for (int i = 0; i < kPairsPerLane; ++i) {
    if (channel[i] < 0) continue;
    const int a = channel[i];
    const int b = a + quarter;
    const float va = first[i] * inverse * static_cast<float>(weight[a]) +
                     static_cast<float>(bias[a]);
    const float vb = second[i] * inverse * static_cast<float>(weight[b]) +
                     static_cast<float>(bias[b]);
    x[a] = static_cast<Half>(va * request.cos[position + a] +
                             vb * request.sin[position + a]);
    x[b] = static_cast<Half>(vb * request.cos[position + b] +
                             va * request.sin[position + b]);
  }
}

}  // namespace

// Launches the kernel on a stream of the current device.
extern "C" LOCKSTEP_EXPORT void lockstep_cuda_qk_norm_rope(
    const QkNormRopeRequest* request, void* stream) {
  const int64_t count = request->num_tokens * 2 * request->num_heads;
  const auto grid =
      static_cast<unsigned>((count + kHeadsPerBlock - 1) / kHeadsPerBlock);
  const auto queue = static_cast<cudaStream_t>(stream);
  if (request->type == HalfType::kFloat16) {
    norm_and_rotate<__half>
        <<<grid, kHeadsPerBlock * kWarp, 0, queue>>>(*request);
  } else {
    norm_and_rotate<__nv_bfloat16>
        <<<grid, kHeadsPerBlock * kWarp, 0, queue>>>(*request);
  }
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string("CUDA error in qk_norm_rope: ") +
                           cudaGetErrorString(status));
}

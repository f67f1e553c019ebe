// The CUDA side of sample_random.cpp; part of liblockstep_cuda. No torch
// header: this file compiles in seconds.
#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "lockstep/export.h"
#include "lockstep/tensor/draw.h"

namespace {

using lockstep::tensor::DrawRequest;

template <typename Draw>
__global__ void fill(DrawRequest request, Draw draw) {
  const int64_t blocks = lockstep::tensor::blocks_per_sample<Draw>(request);
  const int64_t total = request.num_samples * blocks;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < total;
       i += stride) {
    lockstep::tensor::fill_block(request, draw, i / blocks, i % blocks);
  }
}

template <typename Draw>
void launch(const DrawRequest& request, Draw draw, cudaStream_t stream) {
  constexpr int kThreads = 256;
  constexpr int64_t kMaxGrid = 4096;
  const int64_t total =
      request.num_samples * lockstep::tensor::blocks_per_sample<Draw>(request);
  const int64_t grid = std::min((total + kThreads - 1) / kThreads, kMaxGrid);
  fill<<<static_cast<int>(grid), kThreads, 0, stream>>>(request, draw);
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string("CUDA error in random draws: ") +
                           cudaGetErrorString(status));
}

}  // namespace

// Queues the draws on a stream of the current device.
extern "C" LOCKSTEP_EXPORT void lockstep_cuda_fill_draws(
    const DrawRequest* request, void* stream) {
  lockstep::tensor::with_draw(*request, [&](auto draw) {
    launch(*request, draw, static_cast<cudaStream_t>(stream));
  });
}

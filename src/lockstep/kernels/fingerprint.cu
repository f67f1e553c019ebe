// The CUDA side of fingerprint.cpp; part of liblockstep_cuda. No torch header:
// this file compiles in seconds.
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "lockstep/export.h"

namespace {

__device__ uint64_t mix_bits(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

// Bytes, not words: storage of a view may start at any byte.
__device__ uint32_t load_word(const unsigned char* bytes, int64_t index,
                              int64_t num_bytes) {
  const int64_t at = index * 4;
  if (at + 4 <= num_bytes && (reinterpret_cast<uintptr_t>(bytes) & 3) == 0) {
    return reinterpret_cast<const uint32_t*>(bytes)[index];
  }
  uint32_t word = 0;
  for (int64_t i = 0; i < 4 && at + i < num_bytes; ++i) {
    word |= static_cast<uint32_t>(bytes[at + i]) << (8 * i);
  }
  return word;
}

__global__ void hash_words(const unsigned char* bytes, int64_t num_bytes,
                           unsigned long long* total) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  const int64_t num_words = (num_bytes + 3) / 4;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  unsigned long long sum = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       i < num_words; i += stride) {
    sum += mix_bits(load_word(bytes, i, num_bytes) +
                    static_cast<uint64_t>(i + 1) * kGolden);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, offset);
  }
  if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string("CUDA error in fingerprint: ") +
                           cudaGetErrorString(status));
}

}  // namespace

// Runs on the legacy default stream after everything queued on the device.
extern "C" LOCKSTEP_EXPORT uint64_t lockstep_cuda_hash_words(const void* bytes,
                                                             int64_t num_bytes,
                                                             int device) {
  constexpr int kThreads = 256;
  constexpr int64_t kMaxBlocks = 1024;
  check(cudaSetDevice(device));
  check(cudaDeviceSynchronize());
  unsigned long long* total = nullptr;
  check(cudaMalloc(&total, sizeof(*total)));
  check(cudaMemset(total, 0, sizeof(*total)));
  const int64_t num_words = (num_bytes + 3) / 4;
  const int64_t needed = (num_words + kThreads - 1) / kThreads;
  const int64_t blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  if (blocks > 0) {
    hash_words<<<static_cast<int>(blocks), kThreads>>>(
        static_cast<const unsigned char*>(bytes), num_bytes, total);
    check(cudaGetLastError());
  }
  uint64_t result = 0;
  check(cudaMemcpy(&result, total, sizeof(result), cudaMemcpyDeviceToHost));
  check(cudaFree(total));
  return result;
}

// The CUDA side of device.cpp; part of liblockstep_cuda.
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>

#include "lockstep/export.h"

extern "C" {

LOCKSTEP_EXPORT int lockstep_cuda_runtime_version() {
  int version = 0;
  C10_CUDA_CHECK(cudaRuntimeGetVersion(&version));
  return version;
}

// Makes the context too, so that a broken GPU shows at start and not in the
// first step.
LOCKSTEP_EXPORT void lockstep_cuda_set_device(int index) {
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index), /*force=*/true);
}

LOCKSTEP_EXPORT const char* lockstep_cuda_device_uuid(int index) {
  thread_local std::array<char, 40> text{};
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  char* out = text.data();
  for (const char byte : properties.uuid.bytes) {
    out += std::snprintf(out, 3, "%02x", static_cast<unsigned char>(byte));
  }
  return text.data();
}

LOCKSTEP_EXPORT int64_t lockstep_cuda_memory_in_use(int index) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(
      static_cast<c10::DeviceIndex>(index));
  return stats.reserved_bytes[0].current;
}

// used, peak, free and total bytes.
LOCKSTEP_EXPORT void lockstep_cuda_memory(int index, int64_t* values) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(
      static_cast<c10::DeviceIndex>(index));
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  values[0] = stats.reserved_bytes[0].current;
  values[1] = stats.allocated_bytes[0].peak;
  values[2] = static_cast<int64_t>(free_bytes);
  values[3] = static_cast<int64_t>(total_bytes);
}

LOCKSTEP_EXPORT void lockstep_cuda_release_cached_memory() {
  c10::cuda::CUDACachingAllocator::emptyCache();
}

LOCKSTEP_EXPORT const char* lockstep_cuda_device_name(int index) {
  thread_local cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  return properties.name;
}

LOCKSTEP_EXPORT int lockstep_cuda_compute_major(int index) {
  int major = 0;
  C10_CUDA_CHECK(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index));
  return major;
}

LOCKSTEP_EXPORT void lockstep_cuda_synchronize(int index) {
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
  c10::cuda::device_synchronize();
}

}  // extern "C"

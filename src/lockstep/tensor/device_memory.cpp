#include <sys/resource.h>
#include <unistd.h>

#include <array>

#include "lockstep/tensor/cuda_library.h"
#include "lockstep/tensor/device.h"

namespace lockstep::tensor {
namespace {

DeviceMemory host_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  constexpr int64_t kKibibyte = 1024;
  const int64_t page = sysconf(_SC_PAGESIZE);
  return {.used_bytes = host_memory_in_use(),
          .peak_bytes = usage.ru_maxrss * kKibibyte,
          .free_bytes = sysconf(_SC_AVPHYS_PAGES) * page,
          .total_bytes = sysconf(_SC_PHYS_PAGES) * page};
}

}  // namespace

DeviceMemory device_memory(c10::Device device) {
  if (!device.is_cuda()) return host_memory();
  std::array<int64_t, 4> values{};
  cuda_function<void(int, int64_t*)>("lockstep_cuda_memory")(device.index(),
                                                             values.data());
  return {.used_bytes = values[0],
          .peak_bytes = values[1],
          .free_bytes = values[2],
          .total_bytes = values[3]};
}

void release_cached_memory(c10::Device device) {
  if (!device.is_cuda()) return;
  cuda_function<void()>("lockstep_cuda_release_cached_memory")();
}

std::string device_name(c10::Device device) {
  if (!device.is_cuda()) return "CPU";
  return cuda_function<const char*(int)>("lockstep_cuda_device_name")(
      device.index());
}

bool supports_bf16(c10::Device device) {
  if (!device.is_cuda()) return true;
  return cuda_function<int(int)>("lockstep_cuda_compute_major")(
             device.index()) >= 8;
}

}  // namespace lockstep::tensor

#include "lockstep/tensor/cuda_driver.h"

#include <dlfcn.h>

namespace lockstep::tensor {
namespace {

// From cuda.h, which a CPU-only machine does not have.
constexpr int kSuccess = 0;
constexpr int kNoDevice = 100;

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

CudaDriver ask_driver() {
  CudaDriver driver;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return driver;
  const auto get_version = symbol<int (*)(int*)>(library, "cuDriverGetVersion");
  const auto init = symbol<int (*)(unsigned)>(library, "cuInit");
  const auto get_count = symbol<int (*)(int*)>(library, "cuDeviceGetCount");
  if (get_version == nullptr || init == nullptr || get_count == nullptr) {
    driver.problem = "libcuda.so.1 lacks the expected functions";
    return driver;
  }
  get_version(&driver.version);
  const int started = init(0);
  if (started == kSuccess) {
    get_count(&driver.num_devices);
  } else if (started != kNoDevice) {
    driver.problem = "cuInit failed with error " + std::to_string(started) +
                     "; check that nvidia-smi works";
  }
  return driver;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

}  // namespace

const CudaDriver& cuda_driver() {
  static const CudaDriver driver = ask_driver();
  return driver;
}

std::string driver_too_old_message(const CudaDriver& driver, int needed) {
  // Within one major version every driver runs every toolkit (minor version
  // compatibility).
  if (driver.version / 1000 >= needed / 1000) return "";
  return "the NVIDIA driver supports CUDA " + version_text(driver.version) +
         ", this libtorch needs CUDA " + version_text(needed) +
         ": install driver 580 or newer, or set CUDA_VISIBLE_DEVICES= (empty) "
         "to run on the CPU";
}

}  // namespace lockstep::tensor

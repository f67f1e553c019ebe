#include "lockstep/base/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include "lockstep/base/signal_mask.h"

namespace lockstep::base {

bool has_nvidia_driver() {
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

Nvml::Nvml() {
  const AllSignalsBlocked for_its_threads;
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  is_ready_ = library_ != nullptr && call("nvmlInit_v2");
}

std::optional<unsigned> Nvml::count() const {
  unsigned number = 0;
  if (!call("nvmlDeviceGetCount_v2", &number)) return std::nullopt;
  return number;
}

std::optional<Nvml::Device> Nvml::device(unsigned index) const {
  Device device = nullptr;
  if (!call("nvmlDeviceGetHandleByIndex_v2", index, &device)) {
    return std::nullopt;
  }
  return device;
}

void* Nvml::find(const char* name) const {
  return library_ == nullptr ? nullptr : dlsym(library_, name);
}

}  // namespace lockstep::base

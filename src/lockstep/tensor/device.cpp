#include "lockstep/tensor/device.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <optional>

#include "lockstep/base/gpu_setting.h"
#include "lockstep/base/nvml.h"
#include "lockstep/base/process_memory.h"
#include "lockstep/error.h"
#include "lockstep/tensor/cuda_driver.h"
#include "lockstep/tensor/cuda_library.h"

namespace lockstep::tensor {
namespace {

int cuda_runtime_version() {
  return cuda_function<int()>("lockstep_cuda_runtime_version")();
}

// CUDA reads the variable of the process, whatever the caller's environment.
std::optional<std::string> visible_devices_setting() {
  const char* value = std::getenv("CUDA_VISIBLE_DEVICES");
  if (value == nullptr) return std::nullopt;
  return value;
}

int count_installed_gpus() {
  if (!base::has_nvidia_driver()) return 0;
  const base::Nvml nvml;
  if (!nvml.is_ready()) return 0;
  return static_cast<int>(nvml.count().value_or(0));
}

// Why the GPUs that the driver shows cannot be used; empty when they can.
std::string problem_with_gpus() {
  const CudaDriver& driver = cuda_driver();
  if (!driver.problem.empty()) return driver.problem;
  if (driver.num_devices == 0) {
    return base::none_visible_text(visible_devices_setting(),
                                   count_installed_gpus());
  }
  if (find_cuda_symbol("lockstep_cuda_runtime_version") == nullptr) {
    return why_no_cuda_library();
  }
  return driver_too_old_message(driver, cuda_runtime_version());
}

// Computing on the CPU because of a mistyped variable would be noticed late.
bool gpus_are_missed() {
  const CudaDriver& driver = cuda_driver();
  if (driver.num_devices > 0 || !driver.problem.empty()) return false;
  const auto setting = visible_devices_setting();
  return base::misses_gpus(setting, count_installed_gpus());
}

bool driver_is_too_old() {
  const CudaDriver& driver = cuda_driver();
  constexpr int kWheelCuda = 13000;
  return driver.num_devices > 0 &&
         !driver_too_old_message(driver, kWheelCuda).empty();
}

int gpu_of(int local_rank, int num_gpus, const base::Environment& environment) {
  if (num_gpus == 1) return 0;
  if (base::find(environment, "LOCKSTEP_SHARE_GPUS"))
    return local_rank % num_gpus;
  if (local_rank < num_gpus) return local_rank;
  throw DeviceError(
      "this process has local rank " + std::to_string(local_rank) + " but " +
      std::to_string(num_gpus) + " GPUs are visible (CUDA_VISIBLE_DEVICES=" +
      base::find(environment, "CUDA_VISIBLE_DEVICES").value_or("unset") +
      "); start at most one process per GPU, or pass --share-gpus to "
      "lockstep run");
}

}  // namespace

int num_usable_gpus() {
  return problem_with_gpus().empty() ? cuda_driver().num_devices : 0;
}

c10::Device take_device(DeviceChoice choice, int local_rank,
                        const base::Environment& environment) {
  const c10::Device cpu(c10::DeviceType::CPU);
  if (choice == DeviceChoice::kCpu) return cpu;
  const std::string problem = problem_with_gpus();
  if (problem.empty()) {
    const int index =
        gpu_of(local_rank, cuda_driver().num_devices, environment);
    cuda_function<void(int)>("lockstep_cuda_set_device")(index);
    return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index)};
  }
  if (driver_is_too_old()) throw DeviceError("cannot use a GPU: " + problem);
  if (choice == DeviceChoice::kCuda) {
    throw DeviceError("cannot use a GPU: " + problem +
                      "; --device cpu (DeviceChoice::kCpu) uses the CPU");
  }
  if (gpus_are_missed()) {
    throw DeviceError("cannot use a GPU: " + problem +
                      "; name some of them, or choose the CPU: --device cpu, "
                      "DeviceChoice::kCpu, or CUDA_VISIBLE_DEVICES= (empty)");
  }
  if (cuda_driver().num_devices > 0 && local_rank == 0) {
    TORCH_WARN(cuda_driver().num_devices, " GPU(s) stay unused: ", problem);
  }
  return cpu;
}

std::string device_identity(c10::Device device) {
  if (!device.is_cuda()) return "";
  return cuda_function<const char*(int)>("lockstep_cuda_device_uuid")(
      device.index());
}

int64_t device_memory_in_use(c10::Device device) {
  if (!device.is_cuda()) return 0;
  return cuda_function<int64_t(int)>("lockstep_cuda_memory_in_use")(
      device.index());
}

void synchronize(c10::Device device) {
  if (device.is_cuda()) {
    cuda_function<void(int)>("lockstep_cuda_synchronize")(device.index());
  }
}

int64_t host_memory_in_use() { return base::process_memory().resident_bytes; }

}  // namespace lockstep::tensor

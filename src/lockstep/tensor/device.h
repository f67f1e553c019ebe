// The device that a process computes on.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/device.h"

namespace lockstep::tensor {

// The GPUs of this process, as CUDA_VISIBLE_DEVICES leaves them; 0 when they
// cannot be used.
int num_usable_gpus();

// The device of the process with this local rank: the i-th visible GPU, or the
// only one. Sets it as the current device. With LOCKSTEP_SHARE_GPUS ranks wrap
// around. Throws DeviceError when a GPU is wanted and cannot be had: too few of
// them, a driver that is too old, a build without CUDA parts (for kAuto the
// latter is a warning and the CPU is used).
c10::Device take_device(DeviceChoice choice, int local_rank,
                        const base::Environment& environment);

// Identifies the physical GPU across processes and hosts; empty for the CPU.
std::string device_identity(c10::Device device);

// Bytes that this process holds on the device; 0 for the CPU.
int64_t device_memory_in_use(c10::Device device);

struct DeviceMemory {
  int64_t used_bytes = 0;   // Held by this process.
  int64_t peak_bytes = 0;   // The most that its tensors took.
  int64_t free_bytes = 0;   // Left on the device, for any process.
  int64_t total_bytes = 0;  // On the device.
};

// For a GPU, or for the host with the CPU (peak: of the process).
DeviceMemory device_memory(c10::Device device);

// "NVIDIA H200", "CPU".
std::string device_name(c10::Device device);

// bf16 arithmetic in hardware; a CPU always can.
bool supports_bf16(c10::Device device);

// Gives memory that the device's allocator keeps for later back to the driver;
// nothing on the CPU.
void release_cached_memory(c10::Device device);

// Blocks until all work queued on the device is done.
void synchronize(c10::Device device);

// Resident memory of this process.
int64_t host_memory_in_use();

}  // namespace lockstep::tensor

// Which device a process computes on.
#pragma once

namespace lockstep {

enum class DeviceChoice {
  kAuto,  // CUDA when there is a usable GPU, else the CPU.
  kCpu,
  kCuda,  // An error when there is no usable GPU.
};

}  // namespace lockstep

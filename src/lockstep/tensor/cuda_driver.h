// What the NVIDIA driver of this machine offers, asked without libtorch_cuda.
#pragma once

#include <string>

namespace lockstep::tensor {

struct CudaDriver {
  int num_devices = 0;  // As CUDA_VISIBLE_DEVICES leaves them.
  int version =
      0;  // Newest CUDA the driver supports, 13000 for 13.0; 0: no driver
  std::string problem;  // Why there are no devices although a driver is there;
                        // may be empty.
};

// The driver is started once per process; later calls are free.
const CudaDriver& cuda_driver();

// An explanation when `driver` cannot run CUDA `needed` (13000 for 13.0): what
// it supports, what is needed, what to do. Empty when it can.
std::string driver_too_old_message(const CudaDriver& driver, int needed);

}  // namespace lockstep::tensor

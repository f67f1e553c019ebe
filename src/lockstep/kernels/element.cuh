// Element types as template arguments, and the check after a launch.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "lockstep/kernels/element_type.h"

namespace lockstep::kernels {

// Calls function with a null pointer to the element type.
template <typename Function>
void with_element(ElementType type, Function function) {
  switch (type) {
    case ElementType::kFloat32: return function(static_cast<float*>(nullptr));
    case ElementType::kFloat16: return function(static_cast<__half*>(nullptr));
    case ElementType::kBfloat16:
      return function(static_cast<__nv_bfloat16*>(nullptr));
  }
}

inline void check_launch(const char* name) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string("CUDA error in ") + name + ": " +
                           cudaGetErrorString(status));
}

}  // namespace lockstep::kernels

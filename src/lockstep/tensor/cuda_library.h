// The CUDA parts: liblockstep_cuda, a shared library that is loaded where there
// is a GPU.
//
// A program links only libtorch_cpu, starts fast, and runs on machines without
// CUDA. Each folder's CUDA functions are extern "C" symbols of that library,
// found by name here.
#pragma once

#include <string>

namespace lockstep::tensor {

// Null when the library cannot be used; why_no_cuda_library() then gives the
// reason.
void* find_cuda_symbol(const char* name);

std::string why_no_cuda_library();

// As find_cuda_symbol(), but throws DeviceError when the CUDA parts are not
// there.
void* require_cuda_symbol(const char* name);

template <typename Function>
Function* cuda_function(const char* name) {
  return reinterpret_cast<Function*>(require_cuda_symbol(name));
}

}  // namespace lockstep::tensor

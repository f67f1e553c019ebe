// What the kernels' hosts share: which tensors a kernel takes, and its launch.
#pragma once

#include <cstdint>

#include "lockstep/kernels/element_type.h"
#include "lockstep/tensor/cuda_library.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

// In the memory of a GPU; not so a tensor that only stands for one (fake
// tensors of torch.compile, functorch).
bool is_on_gpu(const at::Tensor& tensor);

// float32, float16 or bfloat16.
bool has_element_type(const at::Tensor& tensor);
ElementType element_type(const at::Tensor& tensor);

// Contiguous, and aligned for loads of 16 bytes.
bool is_packed(const at::Tensor& tensor);

// Null for an undefined tensor.
template <typename T = void>
const T* data_or_null(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  return static_cast<const T*>(tensor.const_data_ptr());
}
template <typename T = void>
T* mutable_data_or_null(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  return static_cast<T*>(tensor.mutable_data_ptr());
}

// The current stream of a CUDA device, as liblockstep_cuda takes it.
void* cuda_stream(const at::Device& device);

// Calls a function of liblockstep_cuda that launches on the device's stream.
template <typename Request>
void launch(const char* function, const Request& request,
            const at::Device& device) {
  tensor::cuda_function<void(const Request*, void*)>(function)(
      &request, cuda_stream(device));
}

}  // namespace lockstep::kernels

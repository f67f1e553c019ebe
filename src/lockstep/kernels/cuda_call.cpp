#include "lockstep/kernels/cuda_call.h"

#include <ATen/TensorSubclassLikeUtils.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "lockstep/error.h"

namespace lockstep::kernels {

bool is_on_gpu(const at::Tensor& tensor) {
  return tensor.is_cuda() && !at::isTensorSubclassLike(tensor);
}

bool has_element_type(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
}

ElementType element_type(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat: return ElementType::kFloat32;
    case at::kHalf: return ElementType::kFloat16;
    default: return ElementType::kBfloat16;
  }
}

bool is_packed(const at::Tensor& tensor) {
  constexpr uintptr_t kAlignment = 16;
  return tensor.is_contiguous() &&
         reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kAlignment == 0;
}

void* cuda_stream(const at::Device& device) {
  const c10::impl::VirtualGuardImpl cuda(device.type());
  return cuda.getStreamNativeHandle(cuda.getStream(device));
}

}  // namespace lockstep::kernels

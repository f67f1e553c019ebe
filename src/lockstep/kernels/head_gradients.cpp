#include "lockstep/kernels/head_gradients.h"

#include <ATen/ATen.h>

namespace lockstep::kernels {

bool is_head_strided(const at::Tensor& heads) {
  constexpr int64_t kAlignment = 16;
  const int64_t packed = kAlignment / heads.element_size();
  return heads.stride(3) == 1 && heads.stride(0) % packed == 0 &&
         heads.stride(1) % packed == 0 && heads.stride(2) % packed == 0 &&
         reinterpret_cast<uintptr_t>(heads.const_data_ptr()) % kAlignment == 0;
}

at::Tensor with_head_strides(const at::Tensor& heads) {
  return is_head_strided(heads) ? heads : heads.contiguous();
}

HeadGradients::HeadGradients(const std::vector<at::Tensor>& gradients,
                             const void* (&pointers)[3],
                             HeadStrides (&strides)[3]) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i] = with_head_strides(gradients[i]);
    pointers[i] = tensors_[i].const_data_ptr();
    strides[i] = {.sample = tensors_[i].stride(0),
                  .token = tensors_[i].stride(1),
                  .head = tensors_[i].stride(2)};
  }
}

}  // namespace lockstep::kernels

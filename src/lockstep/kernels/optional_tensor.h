// Arguments of autograd functions, which take no undefined tensors.
#pragma once

#include <optional>

#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

using OptionalTensor = std::optional<at::Tensor>;

inline OptionalTensor optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : OptionalTensor();
}

}  // namespace lockstep::kernels

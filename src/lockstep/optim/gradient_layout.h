// Gradients as the fused kernels take them.
#pragma once

#include "lockstep/tensor/tensor.h"

namespace lockstep::optim {

// The gradient, laid out in memory as its parameter: the kernels go through
// memory and ignore strides. Throws ConfigError for a sparse one.
at::Tensor laid_out_as(const at::Tensor& parameter, const at::Tensor& gradient);

}  // namespace lockstep::optim

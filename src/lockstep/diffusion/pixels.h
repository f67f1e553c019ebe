// Pixels as bytes, 0 to 255, and as numbers for models, -1 to 1.
#pragma once

#include <c10/core/ScalarType.h>

#include "lockstep/tensor/tensor.h"

namespace lockstep::diffusion {

at::Tensor as_levels(const at::Tensor& bytes, at::ScalarType dtype);

// Rounded; what is darker or lighter than a byte can be is cut off.
at::Tensor as_bytes(const at::Tensor& levels);

}  // namespace lockstep::diffusion

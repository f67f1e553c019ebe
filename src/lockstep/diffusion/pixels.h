// Converts pixels between bytes, 0 to 255, and model inputs, -1 to 1.
#pragma once

#include <c10/core/ScalarType.h>

#include "lockstep/tensor/tensor.h"

namespace lockstep::diffusion {

at::Tensor as_levels(const at::Tensor& bytes, at::ScalarType dtype);

// Rounds, and clamps to 0 .. 255.
at::Tensor as_bytes(const at::Tensor& levels);

}  // namespace lockstep::diffusion

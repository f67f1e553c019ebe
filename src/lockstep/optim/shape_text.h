// Shapes in error messages.
#pragma once

#include <string>

#include "lockstep/tensor/tensor.h"

namespace lockstep {

// "[3, 5]"
std::string shape_text(const at::Tensor& tensor);

}  // namespace lockstep

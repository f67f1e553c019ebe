// Tensors of which all ranks of a machine see one copy.
#pragma once

#include <vector>

#include "lockstep/tensor/tensor.h"
#include "lockstep/world.h"

namespace lockstep::comm {

// Zeros with the shapes, strides and types of `like`, which every rank gives
// alike. What one rank writes, all read after the next collective. The memory
// is not given back before the World is closed. A collective; all ranks throw
// ConfigError when they do not share memory or there is not enough.
std::vector<at::Tensor> make_shared_tensors(
    const World& world, const std::vector<at::Tensor>& like);

}  // namespace lockstep::comm

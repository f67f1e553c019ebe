// The parameters of all groups as one list.
#pragma once

#include <span>
#include <vector>

#include "lockstep/optimizer.h"

namespace lockstep::optim {

// In the order of the groups.
std::vector<at::Tensor> parameters_of(std::span<const ParameterGroup> groups);

}  // namespace lockstep::optim

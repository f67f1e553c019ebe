// What a rank alone knows: its generator and the sums of its losses. Where it
// may be lost together with its launcher, all ranks keep it for each other.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lockstep/checkpoint.h"
#include "lockstep/world.h"

namespace torch::nn {
class Module;
}

namespace lockstep::run {

// `if_skipped`: the sums when the update of the step is skipped. `parts`: names
// of the parts of the loss, of which they are.
Tree own_state(const at::Tensor& sums, const at::Tensor& if_skipped,
               const std::vector<std::string>& parts);
std::vector<std::string> parts_of(const TreeView& own);

// They are equal before each forward; afterwards rank 0's count.
Tree buffers_tree(const torch::nn::Module& model);

// Those of all ranks. A collective.
Tree gather_own_states(const World& world, const Tree& own);

// A rank's part of gather_own_states(), also where there were more or fewer
// ranks then: the sums of all stay the same. New ranks have no generator in it.
Tree own_state_of(const World& world, const TreeView& all);

}  // namespace lockstep::run

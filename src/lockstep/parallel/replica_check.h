// Finds ranks whose copy of the training's state is not that of the others.
//
// In data parallelism all ranks hold the same weights and optimizer state, bit
// for bit. A bit that flips in memory, or a processor that computes wrongly,
// shows as a difference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/tensor/tensor.h"
#include "lockstep/world.h"

namespace lockstep::parallel {

struct NamedTensor {
  std::string name = {};
  at::Tensor tensor = {};
};

struct Divergence {
  std::vector<int> ranks = {};          // Those that differ from the majority.
  std::vector<std::string> names = {};  // Tensors that differ.
  // The majority's values were copied to these ranks. Else no majority agrees,
  // `ranks` names all, and nothing has changed.
  bool is_healed = false;
};

// Compares tensors that must be equal on all ranks, given in the same order by
// all; no value when they are. Finds every difference in one bit or in two of a
// tensor, and others but for chance. A collective.
std::optional<Divergence> compare_replicas(
    const World& world, const std::vector<NamedTensor>& tensors);

}  // namespace lockstep::parallel

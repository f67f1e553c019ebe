// Weights that were saved by a module around the model, as Lightning does: the
// names begin with the attribute that holds the model, "model." or another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/checkpoint.h"

namespace lockstep::run {

struct InnerWeights {
  Tree weights;              // By the model's names.
  std::string prefix;        // What was removed from names; often empty.
  int64_t num_left_out = 0;  // Tensors without the prefix: losses, metrics.
};

// Removes the prefix under which `weights`, a dict of tensors, holds at least
// half of the model's `names`. Nothing is removed when one of the names is
// there without a prefix, or behind wrapper_prefix(). If several prefixes hold
// equally many, "model." is taken; throws ConfigError when it is not among
// them. `path` is for the message.
InnerWeights find_inner_weights(Tree weights,
                                const std::vector<std::string>& names,
                                const std::string& path);

}  // namespace lockstep::run

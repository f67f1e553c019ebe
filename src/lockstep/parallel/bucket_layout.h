// Which parameters are reduced together.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep {

// Per bucket the positions of its parameters among those that take part, in the
// order of their gradients. Part of a run's numeric state: from three ranks on,
// another layout adds in another order and changes the last bits.
using BucketLayout = std::vector<std::vector<size_t>>;

// Throws ConfigError unless every position below num_parameters occurs exactly
// once.
void check_layout(const BucketLayout& layout, size_t num_parameters);

}  // namespace lockstep

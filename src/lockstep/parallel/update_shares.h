// Which rank updates which elements of a model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::parallel {

// Rank r has the elements of a tensor from [r] to [r + 1].
using ElementEdges = std::vector<int64_t>;

// Equal shares of tensors that follow one another, for each tensor its edges.
std::vector<ElementEdges> split_evenly(std::span<const int64_t> num_elements,
                                       int num_ranks);

// For each tensor a rank that has some of it, so that all get about as many
// elements in whole tensors.
std::vector<int> assign_whole_tensors(std::span<const ElementEdges> edges);

}  // namespace lockstep::parallel

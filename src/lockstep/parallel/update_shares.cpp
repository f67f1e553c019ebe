#include "lockstep/parallel/update_shares.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace lockstep::parallel {
namespace {

// Kernels treat the last elements of a tensor apart: shares end where whole
// vectors and cache lines do, so that they give the bits of the whole tensor.
constexpr int64_t kGranularity = 1024;

}  // namespace

std::vector<ElementEdges> split_evenly(std::span<const int64_t> num_elements,
                                       int num_ranks) {
  const int64_t total =
      std::accumulate(num_elements.begin(), num_elements.end(), int64_t{0});
  std::vector<ElementEdges> edges;
  int64_t first = 0;
  for (const int64_t count : num_elements) {
    ElementEdges& of_tensor = edges.emplace_back();
    for (int rank = 0; rank <= num_ranks; ++rank) {
      const int64_t place = total * rank / num_ranks - first;
      of_tensor.push_back(place >= count ? count
                                         : std::max<int64_t>(place, 0) /
                                               kGranularity * kGranularity);
    }
    first += count;
  }
  return edges;
}

std::vector<int> assign_whole_tensors(std::span<const ElementEdges> edges) {
  std::vector<int> ranks;
  std::vector<int64_t> assigned;
  for (const ElementEdges& of_tensor : edges) {
    const int num_ranks = static_cast<int>(of_tensor.size()) - 1;
    assigned.resize(num_ranks);
    int best = 0;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int rank = 0; rank < num_ranks; ++rank) {
      const bool has_some = of_tensor[rank] < of_tensor[rank + 1];
      if (!has_some || assigned[rank] >= least) continue;
      best = rank;
      least = assigned[rank];
    }
    assigned[best] += of_tensor.back();
    ranks.push_back(best);
  }
  return ranks;
}

}  // namespace lockstep::parallel

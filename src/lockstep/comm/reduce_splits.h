// Memory in which a rank needs a part of each sum only: all_reduce there is a
// reduce-scatter in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace lockstep::comm {

// Rank r needs the bytes from edges[r] to edges[r + 1] of a tensor; the last
// edge is its size.
using ReduceEdges = std::vector<size_t>;

// Differs, as good as surely, for different edges; 0 for none.
uint64_t fingerprint(const ReduceEdges& edges);

// Which tensors of a heap are split, by where they begin. Thread-safe.
class ReduceSplits {
 public:
  void set(size_t offset, ReduceEdges edges);
  void erase(size_t offset);
  // Empty when a tensor of that size at that place is not split.
  ReduceEdges find(size_t offset, size_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::map<size_t, ReduceEdges> edges_;
};

}  // namespace lockstep::comm

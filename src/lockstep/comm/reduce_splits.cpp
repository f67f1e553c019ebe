#include "lockstep/comm/reduce_splits.h"

#include <utility>

namespace lockstep::comm {

uint64_t fingerprint(const ReduceEdges& edges) {
  if (edges.empty()) return 0;
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, by words.
  for (const size_t edge : edges) hash = (hash ^ edge) * 0x100000001b3;
  return hash | 1;
}

void ReduceSplits::set(size_t offset, ReduceEdges edges) {
  const std::lock_guard lock(mutex_);
  edges_[offset] = std::move(edges);
}

void ReduceSplits::erase(size_t offset) {
  const std::lock_guard lock(mutex_);
  edges_.erase(offset);
}

ReduceEdges ReduceSplits::find(size_t offset, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = edges_.find(offset);
  if (at == edges_.end() || at->second.back() != bytes) return {};
  return at->second;
}

}  // namespace lockstep::comm

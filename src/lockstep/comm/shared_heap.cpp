#include "lockstep/comm/shared_heap.h"

#include <iterator>

#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

constexpr size_t kHeapPageBytes = 4096;

}  // namespace

SharedHeap::SharedHeap(size_t begin, size_t end) {
  if (end > begin) free_[begin] = end - begin;
}

std::optional<size_t> SharedHeap::allocate(size_t bytes) {
  const size_t length =
      (bytes + kHeapPageBytes - 1) / kHeapPageBytes * kHeapPageBytes;
  if (bytes == 0 || length < bytes) return std::nullopt;
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [offset, available] = *range;
    if (available < length) continue;
    free_.erase(range);
    if (available > length) free_[offset + length] = available - length;
    taken_[offset] = length;
    return offset;
  }
  return std::nullopt;
}

size_t SharedHeap::free(size_t offset) {
  const auto block = taken_.find(offset);
  LOCKSTEP_CHECK(block != taken_.end(), "a block that was never taken");
  const size_t length = block->second;
  taken_.erase(block);
  auto range = free_.emplace(offset, length).first;
  const auto next = std::next(range);
  if (next != free_.end() && offset + length == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range != free_.begin()) {
    const auto previous = std::prev(range);
    if (previous->first + previous->second == offset) {
      previous->second += range->second;
      free_.erase(range);
    }
  }
  return length;
}

std::optional<size_t> SharedHeap::block_of(size_t offset) const {
  auto block = taken_.upper_bound(offset);
  if (block == taken_.begin()) return std::nullopt;
  --block;
  if (offset >= block->first + block->second) return std::nullopt;
  return block->first;
}

}  // namespace lockstep::comm

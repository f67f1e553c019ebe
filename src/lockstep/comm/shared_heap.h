// Blocks of a range of addresses: first fit, neighbours joined when freed.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace lockstep::comm {

// Keeps offsets only and touches no memory. Not thread-safe.
class SharedHeap {
 public:
  SharedHeap(size_t begin, size_t end);

  // Whole pages. No value when no free range is as long.
  std::optional<size_t> allocate(size_t bytes);
  // What allocate() gave; returns the length of the block.
  size_t free(size_t offset);
  // Where the taken block begins in which an offset lies.
  std::optional<size_t> block_of(size_t offset) const;

 private:
  std::map<size_t, size_t> free_;  // Offset and length of each free range.
  std::map<size_t, size_t> taken_;
};

}  // namespace lockstep::comm

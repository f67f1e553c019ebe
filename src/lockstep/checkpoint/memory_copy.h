// Copies much memory by several threads.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep::checkpoint {

struct MemoryCopy {
  void* to = nullptr;
  const void* from = nullptr;
  size_t num_bytes = 0;
  // Nobody has written to `to` yet: its pages have to come from the system.
  bool is_new = false;
};

// By at most as many threads as libtorch computes with, this one among them.
// Returns when all is copied.
void copy_all(std::span<const MemoryCopy> copies);

}  // namespace lockstep::checkpoint

// Waiting for keys and for ranks through the store, with answers that name who
// is missing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace c10d {
class Store;
}

namespace lockstep {

// Waits until all keys are set. Returns the positions of those that are not by
// the deadline: empty means success. Throws PeerError when the store itself is
// gone.
std::vector<int> wait_for_keys(c10d::Store& store,
                               const std::vector<std::string>& keys,
                               std::chrono::milliseconds timeout);

// A barrier of host processes. Not thread-safe: one per thread that waits.
class StoreBarrier {
 public:
  StoreBarrier(c10d::Store& store, int rank, int world_size);

  // The ranks that did not come before the deadline; empty when all did.
  std::vector<int> arrive_and_wait(std::chrono::milliseconds timeout);

 private:
  std::string key(int64_t round, int rank) const;

  c10d::Store& store_;
  int rank_;
  int world_size_;
  int64_t round_ = 0;
};

}  // namespace lockstep

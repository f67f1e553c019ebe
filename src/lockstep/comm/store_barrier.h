// Waiting for keys and for ranks through the store, with answers that name who
// is missing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace c10d {
class Store;
}

namespace lockstep::comm {

// Positions of the keys that were not set.
struct Missing {
  std::vector<int> positions;  // Empty: all keys are set.
  bool store_lost = false;     // The store went away: its host ended.
};

// Waits until all keys are set, the deadline passes, or is_hopeless() reports
// that waiting is of no use.
Missing wait_for_keys(
    c10d::Store& store, const std::vector<std::string>& keys,
    std::chrono::milliseconds timeout,
    const std::function<bool()>& is_hopeless = [] { return false; });

// The ranks that a barrier waited for in vain.
struct Absent {
  std::vector<int> late;  // Did not arrive before the deadline.
  std::vector<int> left;  // Have left for good: nobody waits for them.
  bool store_lost = false;
};

// A barrier of host processes. Not thread-safe: one per thread that waits.
class StoreBarrier {
 public:
  StoreBarrier(c10d::Store& store, int rank, int world_size);

  // The result is empty when all arrived.
  Absent arrive_and_wait(std::chrono::milliseconds timeout);

  // The last call: announces the departure, and waits until the others leave
  // too or the time is up.
  void leave(std::chrono::milliseconds timeout);

 private:
  std::vector<std::string> keys_of_all(const std::string& name) const;

  c10d::Store& store_;
  int rank_;
  int world_size_;
  int64_t round_ = 0;
};

}  // namespace lockstep::comm

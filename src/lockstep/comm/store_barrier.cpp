#include "lockstep/comm/store_barrier.h"

#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/explain.h"

namespace lockstep {

std::vector<int> wait_for_keys(c10d::Store& store,
                               const std::vector<std::string>& keys,
                               std::chrono::milliseconds timeout) {
  try {
    store.wait(keys, timeout);
    return {};
  } catch (const std::exception&) {
    // Either the deadline or the store; the questions below tell which.
  }
  std::vector<int> missing;
  try {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (!store.check({keys[i]})) missing.push_back(static_cast<int>(i));
    }
  } catch (const std::exception& error) {
    throw_explained(error, "asking the store, which rank 0 hosts");
  }
  return missing;
}

StoreBarrier::StoreBarrier(c10d::Store& store, int rank, int world_size)
    : store_(store), rank_(rank), world_size_(world_size) {}

std::string StoreBarrier::key(int64_t round, int rank) const {
  return fmt::format("barrier/{}/{}", round, rank);
}

std::vector<int> StoreBarrier::arrive_and_wait(
    std::chrono::milliseconds timeout) {
  const int64_t round = round_++;
  try {
    store_.set(key(round, rank_), "1");
    // Everybody has left round r - 2 once somebody stands in round r.
    if (round >= 2) store_.deleteKey(key(round - 2, rank_));
  } catch (const std::exception& error) {
    throw_explained(error, "entering a barrier through rank 0's store");
  }
  std::vector<std::string> keys;
  for (int rank = 0; rank < world_size_; ++rank) {
    keys.push_back(key(round, rank));
  }
  return wait_for_keys(store_, keys, timeout);
}

}  // namespace lockstep

#include "lockstep/comm/store_barrier.h"

#include <fmt/format.h>

#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/comm/explain.h"
#include "lockstep/error.h"

namespace lockstep::comm {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kDepartedKey = "departed";
constexpr const char* kNumDepartedKey = "num_departed";

std::vector<int> unset_keys(c10d::Store& store,
                            const std::vector<std::string>& keys) {
  std::vector<int> missing;
  if (store.check(keys)) return missing;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!store.check({keys[i]})) missing.push_back(static_cast<int>(i));
  }
  return missing;
}

}  // namespace

// Asks again and again instead of Store::wait(): that one logs every timeout,
// and its connection is of no use after one.
Missing wait_for_keys(c10d::Store& store, const std::vector<std::string>& keys,
                      std::chrono::milliseconds timeout,
                      const std::function<bool()>& is_hopeless) {
  constexpr std::chrono::microseconds kFirstPause{100};
  constexpr std::chrono::microseconds kLongestPause{10000};
  const auto begin = Clock::now();
  Missing missing;
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    try {
      missing.positions = unset_keys(store, keys);
      if (missing.positions.empty() || is_hopeless()) return missing;
    } catch (const std::exception& error) {
      if (missing.positions.empty()) {
        throw_explained(error, "asking the job's store");
      }
      missing.store_lost = true;
      return missing;
    }
    if (Clock::now() - begin + pause > timeout) return missing;
    std::this_thread::sleep_for(pause);
  }
}

StoreBarrier::StoreBarrier(c10d::Store& store, int rank, int world_size)
    : store_(store), rank_(rank), world_size_(world_size) {}

std::vector<std::string> StoreBarrier::keys_of_all(
    const std::string& name) const {
  std::vector<std::string> keys;
  for (int rank = 0; rank < world_size_; ++rank) {
    keys.push_back(fmt::format("{}/{}", name, rank));
  }
  return keys;
}

Absent StoreBarrier::arrive_and_wait(std::chrono::milliseconds timeout) {
  const int64_t round = round_++;
  const auto keys = keys_of_all(fmt::format("barrier/{}", round));
  const auto departures = keys_of_all(kDepartedKey);
  Absent absent;
  // Asked after the keys: a rank that came and then left is not missed.
  const auto somebody_left = [&] {
    if (store_.add(kNumDepartedKey, 0) == 0) return false;
    for (const int rank : unset_keys(store_, keys)) {
      if (store_.check({departures[rank]})) absent.left.push_back(rank);
    }
    return !absent.left.empty();
  };
  try {
    store_.set(keys[rank_], "1");
    // Everybody has left round r - 2 once somebody stands in round r.
    if (round >= 2) {
      store_.deleteKey(fmt::format("barrier/{}/{}", round - 2, rank_));
    }
    const Missing missing = wait_for_keys(store_, keys, timeout, somebody_left);
    absent.late = missing.positions;
    absent.store_lost = missing.store_lost;
  } catch (const std::exception& error) {
    throw_explained(error, "a barrier through the job's store");
  }
  return absent;
}

void StoreBarrier::leave(std::chrono::milliseconds timeout) {
  const auto departures = keys_of_all(kDepartedKey);
  store_.set(departures[rank_], "1");
  store_.add(kNumDepartedKey, 1);
  wait_for_keys(store_, departures, timeout);
}

}  // namespace lockstep::comm

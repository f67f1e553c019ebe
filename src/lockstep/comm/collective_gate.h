// The way to a communicator, which another thread can shut.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#include "lockstep/error.h"

namespace lockstep::comm {

// NCCL must not end a communicator while a collective is being queued on it,
// and libtorch waits for a lock of the thread that ends it. Thread-safe.
class CollectiveGate {
 public:
  using Pass = std::unique_lock<std::recursive_timed_mutex>;

  // To be held while a collective is queued. Throws PeerError once shut.
  Pass enter() {
    Pass pass(mutex_);
    if (is_shut_) {
      throw PeerError(
          "another rank was lost: this rank has let go of the exchange");
    }
    return pass;
  }

  // Waits for who is inside, for a while: CUDA may hold it until the
  // communicator is ended.
  void shut() {
    constexpr std::chrono::seconds kLongestWait{1};
    is_shut_ = true;
    const Pass pass(mutex_, kLongestWait);
  }

 private:
  std::recursive_timed_mutex mutex_;  // A collective may call another one.
  std::atomic<bool> is_shut_ = false;
};

}  // namespace lockstep::comm

// Blocking signals in a thread.
#pragma once

#include <csignal>

namespace lockstep::base {

// While it lives, all signals are blocked in this thread; threads that it
// starts inherit that for good. For threads beside the one that knows what to
// do about signals, and around libraries that start threads.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked();
  ~AllSignalsBlocked();
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace lockstep::base

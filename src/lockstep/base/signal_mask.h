// Threads that take no signals.
#pragma once

#include <csignal>

namespace lockstep {

// While it lives, this thread and threads that it starts take no signal; theirs
// stays so. For threads beside the one that knows what to do about signals, and
// around libraries that start threads of their own.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked();
  ~AllSignalsBlocked();
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace lockstep

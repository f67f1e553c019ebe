// Whether ranks that died are replaced while the others keep their state.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lockstep/launch/worker.h"

namespace lockstep::launch {

class RecoveryPolicy {
 public:
  // Called when a worker has ended. True: those that ended are to be replaced.
  // That needs a rank that holds the state, none that has done all its work
  // (it will not meet a new one), deaths by a signal alone (what a program
  // reports itself would happen again), and progress: a rank that dies again
  // and again at one step is not replaced forever.
  bool allows(std::span<const Worker> workers);

  // How often ranks were replaced.
  int generation() const { return generation_; }

 private:
  static constexpr int kMostWithoutStep = 10;

  int generation_ = 0;
  int without_step_ = 0;
  int64_t steps_ = -1;  // Done at the last recovery.
};

// "rank 2 (pid 17) died by SIGKILL after step 41 and is started again; the
// other ranks keep their state (recovery 1)"
std::string recovery_text(const Worker& worker, int generation);

}  // namespace lockstep::launch

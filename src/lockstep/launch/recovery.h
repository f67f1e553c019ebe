// Whether ranks that died are replaced while the others keep their state.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lockstep/launch/worker.h"

namespace lockstep::launch {

// What the ranks of a node have in memory when ranks are lost.
struct HeldState {
  // None has done all its work (it will not meet a new rank), and those that
  // ended died by a signal (what a program reports itself would happen again).
  bool can_go_on = true;
  bool is_held = false;    // by a rank that lives
  int64_t num_steps = -1;  // that the ranks have done
};

HeldState held_state(std::span<const Worker> workers);

// A rank that dies again and again at one step is not replaced forever.
class RecoveryLimit {
 public:
  // Called at each recovery.
  bool allows(int64_t num_steps);

 private:
  static constexpr int kMostWithoutStep = 10;

  int without_step_ = 0;
  int64_t steps_ = -1;  // Done at the last recovery.
};

// For a job of one node.
class RecoveryPolicy {
 public:
  // Called when a worker has ended. True: those that ended are to be replaced.
  bool allows(std::span<const Worker> workers);

  // How often ranks were replaced.
  int generation() const { return generation_; }

 private:
  int generation_ = 0;
  RecoveryLimit limit_;
};

// "rank 2 (pid 17) died by SIGKILL after step 41 and is started again; the
// other ranks keep their state (recovery 1)"
std::string recovery_text(const Worker& worker, int generation);

}  // namespace lockstep::launch

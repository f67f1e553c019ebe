// Looks at the status pages several times a second and reports ranks that are
// stuck, with their stacks, and ranks that are slow. Ends nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/launch/stack_reader.h"
#include "lockstep/launch/straggler.h"
#include "lockstep/launch/stuck.h"
#include "lockstep/launch/worker.h"

namespace lockstep::launch {

// For the user.
struct StallLines {
  std::vector<std::string> notes = {};  // the launchers of other nodes, too
  std::vector<std::string> stacks = {};
};

// One per attempt. Never blocks.
class StallMonitor {
 public:
  // Does nothing before next_ns(), unless fd() is readable.
  StallLines look(std::span<const Worker> workers);
  int64_t next_ns() const;
  // To be polled for input; -1: there is none.
  int fd() const { return stacks_.fd(); }

  // A stack, for a later look().
  void request(int rank, pid_t pid) { stacks_.request(rank, pid); }

 private:
  int64_t next_look_ns_ = 0;
  StuckWatch stuck_;
  StragglerWatch stragglers_;
  StackReader stacks_;
};

}  // namespace lockstep::launch

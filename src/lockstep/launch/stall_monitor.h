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

// One per attempt. Never blocks.
class StallMonitor {
 public:
  // Lines for the user. Does nothing before next_ns(), unless fd() is readable.
  std::vector<std::string> look(std::span<const Worker> workers);
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

// Threads of another process, held still while their stacks are read.
#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

namespace lockstep::stack {

// Stops threads by PTRACE_SEIZE and PTRACE_INTERRUPT, which leaves a process
// that SIGSTOP has stopped as it is, and lets all go on when destroyed, also by
// the death of this process. Threads that the kernel does not stop within
// 300 ms are let go as well.
class StoppedThreads {
 public:
  // Throws IoError when the first one cannot be traced.
  explicit StoppedThreads(std::span<const pid_t> threads);
  ~StoppedThreads() { release(); }
  StoppedThreads(const StoppedThreads&) = delete;
  StoppedThreads& operator=(const StoppedThreads&) = delete;

  bool is_stopped(pid_t thread) const;
  void release();

 private:
  struct Held {
    pid_t thread = 0;
    bool is_stopped = false;
    int signal = 0;  // that was about to be delivered
  };

  void wait_for_stops();

  std::vector<Held> held_;
};

}  // namespace lockstep::stack

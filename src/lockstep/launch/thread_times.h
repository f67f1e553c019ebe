// How the kernel scheduled the threads of a process, as /proc shows it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace lockstep::launch {

struct ThreadTime {
  int64_t run_ns = 0;    // on a CPU
  int64_t delay_ns = 0;  // runnable, waiting for a CPU; noted when it gets one
  int64_t num_slices = 0;  // times that it got a CPU
  bool is_runnable = false;
};
using ThreadTimes = std::map<pid_t, ThreadTime>;

// Empty when the process is gone or the kernel does not count (schedstat).
ThreadTimes thread_times_of(pid_t pid);

// Between two looks that lie `seconds` apart.
struct SchedulingSeconds {
  double run = 0;  // sum over threads
  // Time in which threads waited for a CPU: their sum, as one may wait for
  // another, and at most 90 % of the time between the looks.
  double starved = 0;
};
SchedulingSeconds scheduling_between(const ThreadTimes& before,
                                     const ThreadTimes& after, double seconds);

}  // namespace lockstep::launch

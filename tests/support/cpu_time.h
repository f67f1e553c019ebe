// How long a piece of work keeps this thread busy, whatever else the machine
// does meanwhile.
#pragma once

#include <time.h>

namespace lockstep::testing {

template <typename Work>
double cpu_seconds(const Work& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) +
           1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

}  // namespace lockstep::testing

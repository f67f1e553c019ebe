// How long a piece of work keeps this thread busy, whatever else the machine
// does meanwhile.
#pragma once

#include <time.h>

#include <algorithm>

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

// Between 16, the growth of linear work, and 256, that of quadratic work.
constexpr double kLinearGrowth = 64;

// The time that `seconds(size)` says by that of a sixteenth of the size; the
// shortest of three each, because other work on the machine takes the caches.
template <typename Seconds>
double growth_of_time(const Seconds& seconds, int size) {
  const auto shortest = [&](int of_size) {
    double least = seconds(of_size);
    for (int i = 1; i < 3; ++i) least = std::min(least, seconds(of_size));
    return least;
  };
  shortest(size / 64);  // What is done once.
  return shortest(size) / shortest(size / 16);
}

}  // namespace lockstep::testing

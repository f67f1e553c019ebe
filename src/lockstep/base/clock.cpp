#include "lockstep/base/clock.h"

#include <array>
#include <ctime>

namespace lockstep::base {

int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

double seconds_between(int64_t begin_ns, int64_t end_ns) {
  return static_cast<double>(end_ns - begin_ns) * 1e-9;
}

std::string local_timestamp(int64_t unix_time) {
  const std::time_t time = unix_time;
  std::tm parts{};
  localtime_r(&time, &parts);
  std::array<char, 32> text{};
  const auto length =
      std::strftime(text.data(), text.size(), "%Y-%m-%d_%H:%M:%S", &parts);
  return {text.data(), length};
}

int64_t unix_seconds() { return std::time(nullptr); }

}  // namespace lockstep::base

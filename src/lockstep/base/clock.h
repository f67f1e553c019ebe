// Time: a monotonic clock that all processes of a host share, and wall-clock
// stamps.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::base {

constexpr int64_t kNsPerSecond = 1'000'000'000;

// CLOCK_MONOTONIC in nanoseconds; comparable between processes of one host.
int64_t monotonic_ns();

double seconds_between(int64_t begin_ns, int64_t end_ns);

// Local time as "2026-03-01_09:15:02", the form of torchrun's failure report.
std::string local_timestamp(int64_t unix_seconds);

int64_t unix_seconds();

}  // namespace lockstep::base

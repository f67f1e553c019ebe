// How long something usually takes: a small histogram that fits into a status
// page.
//
// Durations from 100 ms on are counted in classes that differ by a factor of
// 2^(1/4); shorter ones are one class. Old ones fade out: when a class is full,
// all are halved. One thread writes, any process reads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace lockstep::base {

class DurationCounts {
 public:
  static constexpr int64_t kFewestSamples = 20;

  void add(int64_t duration_ns);

  int64_t num_samples() const;
  // A bound that 99 of 100 durations reach or stay below, rounded down to the
  // beginning of its class: 0 when that is below 100 ms. No value with fewer
  // than kFewestSamples, or when it is longer than the longest class (5 min).
  std::optional<double> p99_seconds() const;

 private:
  static constexpr size_t kNumClasses = 48;
  std::array<std::atomic<uint16_t>, kNumClasses> counts_;
};
static_assert(sizeof(DurationCounts) == 96);
static_assert(std::atomic<uint16_t>::is_always_lock_free);

}  // namespace lockstep::base

#include "lockstep/base/duration_counts.h"

#include <algorithm>
#include <cmath>

namespace lockstep::base {
namespace {

constexpr double kShortestNs = 1e8;
constexpr int kClassesPerOctave = 4;
constexpr uint16_t kFull = 60'000;

}  // namespace

void DurationCounts::add(int64_t duration_ns) {
  size_t index = 0;
  if (static_cast<double>(duration_ns) >= kShortestNs) {
    const double octaves =
        std::log2(static_cast<double>(duration_ns) / kShortestNs);
    index = std::min(kNumClasses - 1,
                     1 + static_cast<size_t>(octaves * kClassesPerOctave));
  }
  std::atomic<uint16_t>& count = counts_.at(index);
  const uint16_t before = count.load(std::memory_order_relaxed);
  count.store(static_cast<uint16_t>(before + 1), std::memory_order_relaxed);
  if (before + 1 < kFull) return;
  for (auto& each : counts_) {
    each.store(each.load(std::memory_order_relaxed) / 2,
               std::memory_order_relaxed);
  }
}

int64_t DurationCounts::num_samples() const {
  int64_t sum = 0;
  for (const auto& count : counts_) sum += count;
  return sum;
}

std::optional<double> DurationCounts::p99_seconds() const {
  const int64_t num = num_samples();
  if (num < kFewestSamples) return std::nullopt;
  int64_t above = 0;
  size_t index = kNumClasses - 1;
  // At most one in a hundred is longer.
  for (; index > 0; --index) {
    above += counts_.at(index);
    if (above * 100 > num) break;
  }
  if (index == kNumClasses - 1) return std::nullopt;
  if (index == 0) return 0;
  const double octaves = static_cast<double>(index - 1) / kClassesPerOctave;
  return kShortestNs * 1e-9 * std::exp2(octaves);
}

}  // namespace lockstep::base

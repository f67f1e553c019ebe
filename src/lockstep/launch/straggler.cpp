#include "lockstep/launch/straggler.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

constexpr double kSlowFraction = 0.2;  // of the step without the delay
constexpr double kInTimeFraction = 0.1;
constexpr double kSlowestNotable = 5e-3;  // seconds per step
constexpr double kWaitingPart = 0.5;      // of the delay, on other ranks
constexpr int64_t kPersistentSteps = 20;
constexpr int64_t kPersistentNs = 30 * base::kNsPerSecond;  // of slowness
constexpr int kFewestLooks = 3;

// Seconds per step.
struct Pace {
  double data = 0;
  double compute = 0;
  double exchange = 0;
  double other = 0;

  double own() const { return data + compute; }
  double step() const { return own() + exchange + other; }
};

Pace pace_of(const base::StepSeconds& times) {
  const auto steps = static_cast<double>(times.num_steps);
  return {.data = times.data / steps,
          .compute = times.compute / steps,
          .exchange = times.exchange / steps,
          .other = times.other / steps};
}

enum class Middle { kLower, kUpper };  // of an even number of values

double median(std::span<const Pace> paces, double Pace::* part, Middle middle) {
  std::vector<double> values;
  values.reserve(paces.size());
  for (const Pace& pace : paces) values.push_back(pace.*part);
  std::ranges::sort(values);
  const size_t index =
      middle == Middle::kLower ? (values.size() - 1) / 2 : values.size() / 2;
  return values[index];
}

// A rank against the others.
struct Delay {
  double fraction = 0;  // of the step without it; 0: it delays nobody
  bool is_data = false;
  double own = 0;     // seconds per step of what is slow
  double others = 0;  // the same on the other ranks
};

Delay delay_of(const Pace& pace, std::span<const Pace> others) {
  const double data = median(others, &Pace::data, Middle::kLower);
  const double compute = median(others, &Pace::compute, Middle::kLower);
  const double exchange = median(others, &Pace::exchange, Middle::kUpper);
  const double gap = pace.own() - data - compute;
  if (gap < kSlowestNotable || exchange - pace.exchange < kWaitingPart * gap) {
    return {};
  }
  Delay delay{.fraction = gap / std::max(1e-9, pace.step() - gap),
              .is_data = pace.data - data > pace.compute - compute};
  delay.own = delay.is_data ? pace.data : pace.compute;
  delay.others = delay.is_data ? data : compute;
  return delay;
}

std::string slow_text(int rank, const Delay& delay) {
  return fmt::format(
      "rank {} slows the job by {:.0f} %: {} takes it {} a step, the others "
      "{}, and they wait for it; {}",
      rank, 100 * delay.fraction, delay.is_data ? "loading data" : "computing",
      base::duration_text(delay.own), base::duration_text(delay.others),
      delay.is_data
          ? "look at its disk and its samples, or raise --workers"
          : "look for other programs on its CPUs or GPU, or a GPU that is hot "
            "or clocked down (nvidia-smi)");
}

bool is_measured(const RankPace& rank) { return rank.times.num_steps > 0; }

bool is_equal(const base::StepSeconds& a, const base::StepSeconds& b) {
  return a.num_steps == b.num_steps && a.data == b.data &&
         a.compute == b.compute && a.exchange == b.exchange;
}

}  // namespace

std::vector<std::string> StragglerWatch::look(std::span<const RankPace> ranks,
                                              int64_t now_ns) {
  std::vector<std::string> lines;
  if (ranks.size() < 2 || !std::ranges::all_of(ranks, is_measured)) return {};
  for (const RankPace& rank : ranks) {
    Record& record = records_[rank.rank];
    if (is_equal(record.times, rank.times)) continue;
    record.times = rank.times;
    std::vector<Pace> others;
    for (const RankPace& other : ranks) {
      if (other.rank != rank.rank) others.push_back(pace_of(other.times));
    }
    const Delay delay = delay_of(pace_of(rank.times), others);
    const bool differs = record.is_slow ? delay.fraction < kInTimeFraction
                                        : delay.fraction >= kSlowFraction;
    if (!differs) {
      record.since_step = -1;
      record.num_looks = 0;
      continue;
    }
    if (record.since_step < 0) {
      record.since_step = rank.num_steps;
      record.since_ns = now_ns;
    }
    ++record.num_looks;
    if (record.num_looks < kFewestLooks ||
        rank.num_steps - record.since_step < kPersistentSteps ||
        (!record.is_slow && now_ns - record.since_ns < kPersistentNs)) {
      continue;
    }
    record.is_slow = !record.is_slow;
    record.since_step = -1;
    record.num_looks = 0;
    lines.push_back(
        record.is_slow
            ? slow_text(rank.rank, delay)
            : fmt::format("rank {} no longer slows the job", rank.rank));
  }
  return lines;
}

}  // namespace lockstep::launch

#include "lockstep/launch/stop_patience.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

constexpr double kShortStopSeconds = 2;               // Not worth a line.
constexpr int64_t kQuietNs = 5 * base::kNsPerSecond;  // Then it is worth one.
constexpr int64_t kFirstIntervalNs = 30 * base::kNsPerSecond;

std::string steps_text(int64_t first, int64_t last) {
  return first == last ? fmt::format("step {} is", first)
                       : fmt::format("steps {} to {} are", first, last);
}

std::string under_way_text(const base::TrainingStatus& training) {
  std::string text;
  if (training.activity == base::Activity::kStep) {
    text = fmt::format("step {}", training.num_steps + 1);
  } else {
    text = base::activity_name(training.activity);
  }
  text += fmt::format(" is under way for {}",
                      base::duration_text(training.activity_seconds));
  if (training.typical_seconds > 0) {
    text += fmt::format(" (one takes {})",
                        base::duration_text(training.typical_seconds));
  }
  return text;
}

}  // namespace

std::optional<base::TrainingStatus> combine(
    std::span<const base::TrainingStatus> ranks) {
  if (ranks.empty()) return std::nullopt;
  base::TrainingStatus result = ranks[0];
  for (const base::TrainingStatus& rank : ranks) {
    // The others wait for a rank that still computes.
    if (!will_save(result) && will_save(rank)) {
      result.activity = rank.activity;
      result.activity_seconds = rank.activity_seconds;
      result.typical_seconds = rank.typical_seconds;
    }
  }
  for (const base::TrainingStatus& rank : ranks) {
    result.num_steps = std::max(result.num_steps, rank.num_steps);
    result.saved_step = std::max(result.saved_step, rank.saved_step);
    result.saving_seconds =
        std::max(result.saving_seconds, rank.saving_seconds);
  }
  return result;
}

bool will_save(const base::TrainingStatus& training) {
  return training.activity != base::Activity::kFinishing;
}

std::optional<double> expected_seconds(const base::TrainingStatus& training) {
  if (training.typical_seconds <= 0) return std::nullopt;
  const double left =
      std::max(0.0, training.typical_seconds - training.activity_seconds);
  if (training.activity == base::Activity::kSaving) return left;
  return left + training.saving_seconds;
}

std::string stop_wait_text(const base::TrainingStatus& training) {
  const auto expected = expected_seconds(training);
  const bool is_saving = training.activity == base::Activity::kSaving;
  return fmt::format(
      "{}: waiting for {}, {}; Ctrl-C again ends at once and loses what came "
      "after {}",
      under_way_text(training), is_saving ? "it" : "its end and a checkpoint",
      expected ? "about " + base::duration_text(*expected)
               : "how long is not known yet",
      training.saved_step < 0
          ? "the start: there is no checkpoint yet"
          : fmt::format("the checkpoint of step {}", training.saved_step));
}

std::optional<std::string> loss_text(const base::TrainingStatus& training) {
  const bool is_in_step = training.activity == base::Activity::kStep;
  const int64_t first = std::max<int64_t>(training.saved_step, 0) + 1;
  const int64_t last = training.num_steps + (is_in_step ? 1 : 0);
  if (last < first) return std::nullopt;
  std::string text =
      "ended before the training was saved: " + steps_text(first, last) +
      " lost";
  if (is_in_step && first < last) {
    text += fmt::format(", step {} was under way", last);
  }
  if (training.saved_step < 0) return text + "; there is no checkpoint";
  return text + fmt::format(
                    "; --resume latest goes on from the checkpoint of "
                    "step {}",
                    training.saved_step);
}

std::string StopPatience::take_message(const base::TrainingStatus& training,
                                       int64_t now_ns) {
  if (now_ns < next_ns_) return "";
  const auto expected = expected_seconds(training);
  const bool is_first = interval_ns_ == 0;
  if (is_first && expected && *expected < kShortStopSeconds &&
      now_ns - begin_ns_ < kQuietNs) {
    next_ns_ = begin_ns_ + kQuietNs;
    return "";
  }
  interval_ns_ = is_first ? kFirstIntervalNs : 2 * interval_ns_;
  next_ns_ = now_ns + interval_ns_;
  return stop_wait_text(training);
}

}  // namespace lockstep::launch

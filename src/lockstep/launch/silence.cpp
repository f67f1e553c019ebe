#include "lockstep/launch/silence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/worker.h"

namespace lockstep::launch {
namespace {

constexpr double kShortSilenceSeconds = 5;  // not worth a look at the process
constexpr double kWarningSeconds = 60;
constexpr double kSilenceGraceSeconds = 5;  // as for a collective

// Since the last note or output.
double silent_seconds(const RankSnapshot& rank) {
  return std::min(rank.status->silent_seconds,
                  rank.quiet_seconds.value_or(rank.status->silent_seconds));
}

bool is_judged(const RankSnapshot& rank) {
  return rank.is_alive && rank.status &&
         rank.status->phase != base::Phase::kDone;
}

}  // namespace

SilenceSources this_system() {
  return {.now_ns = base::monotonic_ns,
          .activity = activity_of,
          .waiting = waiting_text};
}

SilenceWatch::SilenceWatch(double timeout_seconds, SilenceSources sources)
    : timeout_seconds_(timeout_seconds), sources_(std::move(sources)) {}

SilenceFinding SilenceWatch::look(std::span<const RankSnapshot> ranks) {
  SilenceFinding finding;
  for (const RankSnapshot& rank : ranks) {
    if (!is_judged(rank)) continue;
    Record& record = records_[rank.rank];
    // Another process may have replaced it.
    if (rank.pid != record.pid) record = {.pid = rank.pid};
    update(rank, record);
    if (record.is_warned || !is_worth_a_warning(rank, record)) continue;
    record.is_warned = true;
    finding.warnings.push_back(warning(rank));
    finding.warned.emplace_back(rank.rank, rank.pid);
  }
  finding.failure = find_failure(ranks);
  return finding;
}

void SilenceWatch::update(const RankSnapshot& rank, Record& record) const {
  const int64_t now = sources_.now_ns();
  if (silent_seconds(rank) < kShortSilenceSeconds) {
    record.activity.reset();
    record.is_busy = false;
    record.worked_ns = now;
    return;
  }
  const ProcessActivity activity = sources_.activity(rank.pid);
  record.is_busy = record.activity &&
                   has_worked(*record.activity, activity,
                              base::seconds_between(record.looked_ns, now));
  // What came before the first look is not known.
  if (record.is_busy || !record.activity) record.worked_ns = now;
  record.activity = activity;
  record.looked_ns = now;
}

double SilenceWatch::idle_seconds(const RankSnapshot& rank) const {
  const auto record = records_.find(rank.rank);
  if (record == records_.end()) return 0;
  return std::min(
      silent_seconds(rank),
      base::seconds_between(record->second.worked_ns, sources_.now_ns()));
}

bool SilenceWatch::is_worth_a_warning(const RankSnapshot& rank,
                                      const Record& record) const {
  const double limit = timeout_of(rank, timeout_seconds_);
  const double soon = std::min(limit, kWarningSeconds);
  if (rank.is_stopped()) return silent_seconds(rank) >= soon;
  if (rank.is_in_collective()) return false;
  if (idle_seconds(rank) >= soon) return true;
  // Busy: a user's own loop may compute for hours without a word.
  return record.is_busy && rank.is_paced && silent_seconds(rank) >= limit;
}

std::string SilenceWatch::warning(const RankSnapshot& rank) const {
  const double limit = timeout_of(rank, timeout_seconds_);
  std::string text = fmt::format(
      "no sign of life from rank {} (pid {}) for {}: phase {}{}; ", rank.rank,
      rank.pid, base::duration_text(silent_seconds(rank)),
      base::phase_name(rank.status->phase), step_text(*rank.status));
  if (rank.is_stopped()) {
    return text + stopped_text(rank) + "; the job waits for it";
  }
  text += "its process is " + sources_.waiting(rank.pid);
  if (idle_seconds(rank) < std::min(limit, kWarningSeconds)) {
    return text + " and works; the job goes on";
  }
  text += " and does nothing";
  if (!rank.is_paced) return text + "; the job goes on";
  return text + fmt::format(
                    "; the job ends when no rank does anything for longer than "
                    "{} (--timeout)",
                    base::duration_text(limit));
}

std::optional<Failure> SilenceWatch::find_failure(
    std::span<const RankSnapshot> ranks) const {
  const RankSnapshot* stuck = nullptr;
  double shortest = 1e18;
  for (const RankSnapshot& rank : ranks) {
    if (!rank.is_alive) continue;
    if (!is_judged(rank) || rank.is_stopped() || rank.is_in_collective()) {
      return std::nullopt;
    }
    const double idle = idle_seconds(rank);
    if (idle <= timeout_of(rank, timeout_seconds_) + kSilenceGraceSeconds) {
      return std::nullopt;
    }
    shortest = std::min(shortest, idle);
    if (rank.is_paced && stuck == nullptr) stuck = &rank;
  }
  if (stuck == nullptr) return std::nullopt;
  const double limit = timeout_of(*stuck, timeout_seconds_);
  return Failure{
      .rank = stuck->rank,
      .local_rank = stuck->local_rank,
      .pid = stuck->pid,
      .exit_code = kTimeoutExitCode,
      .unix_time = unix_now(),
      .error_file = "<N/A>",
      .error =
          base::ErrorReport{
              .message = fmt::format(
                  "TimeoutError: no rank gave a sign of life or "
                  "did anything for {}, longer than the limit of "
                  "{}; lockstep run ends the job",
                  base::duration_text(shortest), base::duration_text(limit)),
              .callstack = ""},
      .last_lines = {}};
}

std::string silence_verdict(std::span<const RankSnapshot> ranks,
                            double timeout_seconds) {
  std::string text = "Timeout: no rank gave a sign of life\n";
  for (const RankSnapshot& rank : ranks) {
    if (rank.is_alive) text += stalling_line(rank, "stuck");
  }
  return text + limit_line(ranks, timeout_seconds);
}

}  // namespace lockstep::launch

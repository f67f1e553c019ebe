#include "lockstep/launch/stuck.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/process_activity.h"
#include "lockstep/launch/processes.h"
#include "lockstep/launch/ranks_text.h"
#include "lockstep/launch/verdict.h"

namespace lockstep::launch {
namespace {

constexpr double kShortestLimit = 1;
constexpr double kP99Factor = 10;
constexpr double kKnownFactor = 2;  // of a silence that ended by itself
// Threads are looked at from this part of the limit on.
constexpr double kSuspicion = 0.25;
// A look that comes later counts as this many: the launcher had no CPU either.
constexpr double kMostLooks = 2;
constexpr double kBusyCores = 0.5;

bool is_judged_phase(base::Phase phase) {
  switch (phase) {
    case base::Phase::kReady:
    case base::Phase::kLoadingData:
    case base::Phase::kForward:
    case base::Phase::kBackward:
    case base::Phase::kUpdating:
    case base::Phase::kEvaluating:
    case base::Phase::kSampling:
    case base::Phase::kSaving: return true;
    default: return false;
  }
}

bool is_stop_state(char state) { return state == 'T' || state == 't'; }

std::string name_of(const WatchedRank& rank) {
  return fmt::format("rank {} (pid {})", rank.rank, rank.pid);
}

// "; ranks 0, 2 wait for it in all_reduce #13 (16.2 KiB)"
std::string waiters_text(const WatchedRank& culprit,
                         std::span<const WatchedRank> ranks) {
  std::vector<int> waiters;
  const WatchedRank* first = nullptr;
  for (const WatchedRank& rank : ranks) {
    if (rank.rank == culprit.rank || !rank.is_in_collective()) continue;
    if (rank.status.collectives_started < culprit.status.collectives_started) {
      continue;
    }
    if (first == nullptr) first = &rank;
    waiters.push_back(rank.rank);
  }
  if (first == nullptr) return "";
  return fmt::format("; {} wait{} for it in {}",
                     ranks_text(waiters, culprit.status.world_size),
                     waiters.size() == 1 ? "s" : "",
                     collective_text(first->status));
}

bool have_equal_collectives(std::span<const WatchedRank> ranks) {
  return std::ranges::all_of(ranks, [&](const WatchedRank& rank) {
    return rank.status.collective == ranks[0].status.collective &&
           rank.status.collective_bytes == ranks[0].status.collective_bytes;
  });
}

}  // namespace

StuckSources stuck_sources_of_system() {
  return {.now_ns = base::monotonic_ns,
          .state =
              [](pid_t pid) {
                const auto process = find_process(pid);
                return process ? process->state : '?';
              },
          .threads = thread_times_of,
          .waiting = waiting_text};
}

StuckWatch::StuckWatch(StuckSources sources) : sources_(std::move(sources)) {}

std::vector<StuckNote> StuckWatch::look(std::span<const WatchedRank> ranks) {
  std::vector<StuckNote> notes;
  const int64_t now = sources_.now_ns();
  const double elapsed =
      looked_ns_ == 0 ? 0 : base::seconds_between(looked_ns_, now);
  looked_ns_ = now;
  for (const WatchedRank& rank : ranks) {
    if (auto moved = update(rank, elapsed)) notes.push_back(*std::move(moved));
  }
  for (const WatchedRank* culprit : find_culprits(ranks)) {
    notes.push_back(note(*culprit, ranks));
    records_[culprit->rank].is_reported = true;
  }
  if (auto waiting = common_wait(ranks)) notes.push_back(*std::move(waiting));
  return notes;
}

std::optional<StuckNote> StuckWatch::update(const WatchedRank& rank,
                                            double elapsed) {
  Record& record = records_[rank.rank];
  // What was known of a process does not hold for the one that replaces it.
  if (rank.pid != record.pid) record = {.pid = rank.pid};
  if (rank.sign_ns != record.sign_ns) return restart(rank, record);
  double chance = std::min(elapsed, kMostLooks * kLookSeconds);
  const auto limit = limit_of(rank);
  if (limit && !record.is_reported && record.chance_seconds <= *limit &&
      record.chance_seconds + chance >= kSuspicion * *limit) {
    ThreadTimes threads = sources_.threads(rank.pid);
    if (!record.threads.empty() && elapsed > 0) {
      const auto spent = scheduling_between(record.threads, threads, elapsed);
      chance *= 1 - spent.starved / elapsed;
      record.run_seconds += spent.run;
      record.measured_seconds += elapsed - spent.starved;
    }
    record.threads = std::move(threads);
  }
  record.chance_seconds += chance;
  return std::nullopt;
}

// It gave a sign of life.
std::optional<StuckNote> StuckWatch::restart(const WatchedRank& rank,
                                             Record& record) {
  std::optional<StuckNote> moved;
  if (record.is_reported) {
    const double silence = base::seconds_between(record.sign_ns, rank.sign_ns);
    if (!record.is_stopped) {
      double& known = record.known_silence[record.stage];
      known = std::max(known, silence);
    }
    if (!record.is_waiter) {
      moved = {.text = fmt::format("{} goes on after {}", name_of(rank),
                                   base::duration_text(silence))};
    }
  }
  auto known = std::move(record.known_silence);
  record = {.pid = rank.pid, .stage = rank.stage, .sign_ns = rank.sign_ns};
  record.known_silence = std::move(known);
  record.chance_seconds =
      std::min(base::seconds_between(rank.sign_ns, looked_ns_),
               kMostLooks * kLookSeconds);
  return moved;
}

std::optional<double> StuckWatch::limit_of(const WatchedRank& rank) const {
  if (!rank.p99_seconds || !is_judged_phase(rank.status.phase)) {
    return std::nullopt;
  }
  return std::max(kShortestLimit, kP99Factor * *rank.p99_seconds);
}

bool StuckWatch::is_beyond(const WatchedRank& rank) const {
  const auto limit = limit_of(rank);
  const Record& record = records_.at(rank.rank);
  return limit && record.chance_seconds > *limit;
}

std::vector<const WatchedRank*> StuckWatch::find_culprits(
    std::span<const WatchedRank> ranks) {
  std::vector<const WatchedRank*> found;
  int64_t fewest = INT64_MAX;  // of ranks that keep others waiting
  int64_t most = 0;
  for (const WatchedRank& rank : ranks) {
    const int64_t started = rank.status.collectives_started;
    most = std::max(most, started);
    if (!rank.is_in_collective() && is_beyond(rank)) {
      fewest = std::min(fewest, started);
    }
  }
  // A rank may hang inside of a collective that the others have left.
  for (const WatchedRank& rank : ranks) {
    const int64_t started = rank.status.collectives_started;
    if (rank.is_in_collective() && started < most && is_beyond(rank)) {
      fewest = std::min(fewest, started);
    }
  }
  for (const WatchedRank& rank : ranks) {
    Record& record = records_[rank.rank];
    if (record.is_reported || !is_beyond(rank)) continue;
    record.is_stopped = is_stop_state(sources_.state(rank.pid));
    const int64_t started = rank.status.collectives_started;
    const bool is_behind =
        started <= fewest && (!rank.is_in_collective() || started < most);
    const double known = record.known_silence[rank.stage] * kKnownFactor;
    if (record.is_stopped || (is_behind && record.chance_seconds > known)) {
      found.push_back(&rank);
    }
  }
  return found;
}

std::string StuckWatch::process_text(const WatchedRank& rank) const {
  const Record& record = records_.at(rank.rank);
  const char state = sources_.state(rank.pid);
  if (is_stop_state(state)) {
    RankSnapshot snapshot;
    snapshot.pid = rank.pid;
    snapshot.state = state;
    return stopped_text(snapshot);
  }
  const double cores = record.measured_seconds > 0
                           ? record.run_seconds / record.measured_seconds
                           : 0;
  if (cores >= kBusyCores) return "computes or spins";
  return "is " + sources_.waiting(rank.pid);
}

StuckNote StuckWatch::note(const WatchedRank& culprit,
                           std::span<const WatchedRank> ranks) const {
  std::string stage = culprit.stage;
  if (culprit.is_in_collective()) {
    stage += ", in " + collective_text(culprit.status);
  }
  return {.text = fmt::format(
              "{} is stuck for {} in {}{} (limit {}); its process {}{}",
              name_of(culprit),
              base::duration_text(
                  base::seconds_between(culprit.sign_ns, looked_ns_)),
              stage, step_text(culprit.status),
              base::duration_text(limit_of(culprit).value_or(0)),
              process_text(culprit), waiters_text(culprit, ranks)),
          .culprit = StuckNote::Culprit{culprit.rank, culprit.pid}};
}

// All ranks of the job are in a collective, and none is behind.
std::optional<StuckNote> StuckWatch::common_wait(
    std::span<const WatchedRank> ranks) {
  // Those of other nodes are not seen from here.
  const auto num_ranks = static_cast<int>(ranks.size());
  if (num_ranks < 2 || num_ranks != ranks[0].status.world_size) {
    return std::nullopt;
  }
  for (const WatchedRank& rank : ranks) {
    const Record& record = records_[rank.rank];
    if (record.is_reported || !rank.is_in_collective() || !is_beyond(rank) ||
        rank.status.collectives_started !=
            ranks[0].status.collectives_started) {
      return std::nullopt;
    }
    const auto known = record.known_silence.find(rank.stage);
    if (known != record.known_silence.end() &&
        record.chance_seconds <= kKnownFactor * known->second) {
      return std::nullopt;
    }
  }
  for (const WatchedRank& rank : ranks) {
    records_[rank.rank].is_reported = true;
    records_[rank.rank].is_waiter = true;
  }
  const WatchedRank& first = ranks[0];
  const std::string silence =
      base::duration_text(base::seconds_between(first.sign_ns, looked_ns_));
  return StuckNote{
      .text =
          have_equal_collectives(ranks)
              ? fmt::format("all {} ranks wait in {} for {}{}, and none is "
                            "behind: suspect the network or a GPU",
                            num_ranks, collective_text(first.status), silence,
                            step_text(first.status))
              : fmt::format("all {} ranks wait in collective #{} for {}{}, but "
                            "not in the same one: look for code, settings or "
                            "data that differ between ranks",
                            num_ranks, first.status.collectives_started,
                            silence, step_text(first.status)),
      .culprit = StuckNote::Culprit{first.rank, first.pid}};
}

}  // namespace lockstep::launch

#include "lockstep/launch/stall_monitor.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/clock.h"

namespace lockstep::launch {
namespace {

using Training = std::optional<base::TrainingStatus>;

// A step consists of phases; other activities are one stage each.
bool is_own_stage(const Training& training) {
  return training && training->activity != base::Activity::kNone &&
         training->activity != base::Activity::kStep;
}

WatchedRank watched(const Worker& worker, const base::RankStatus& status,
                    const Training& training) {
  WatchedRank rank{.rank = worker.rank, .pid = worker.pid, .status = status};
  rank.stage = "phase " + base::phase_name(status.phase);
  rank.p99_seconds = status.phase_p99_seconds;
  rank.sign_ns = status.heartbeat_ns;
  if (training) {
    rank.sign_ns = std::max(rank.sign_ns, training->activity_begin_ns);
  }
  if (is_own_stage(training)) {
    rank.stage = base::activity_name(training->activity);
    rank.p99_seconds = training->activity_p99_seconds;
  }
  for (const OutputStream& stream : worker.streams) {
    rank.sign_ns = std::max(rank.sign_ns, stream.last_output_ns());
  }
  return rank;
}

}  // namespace

int64_t StallMonitor::next_ns() const {
  return std::min(next_look_ns_, stacks_.deadline_ns());
}

StallLines StallMonitor::look(std::span<const Worker> workers) {
  StallLines lines;
  const int64_t now = base::monotonic_ns();
  if (now >= next_look_ns_) {
    next_look_ns_ = now + static_cast<int64_t>(StuckWatch::kLookSeconds *
                                               double{base::kNsPerSecond});
    std::vector<WatchedRank> ranks;
    std::vector<RankPace> paces;
    for (const Worker& worker : workers) {
      const auto status = worker.status.read();
      if (!worker.is_alive() || !status) continue;
      const Training training = worker.training.read();
      ranks.push_back(watched(worker, *status, training));
      if (!training) continue;
      paces.push_back({.rank = worker.rank,
                       .num_steps = training->num_steps,
                       .times = training->times});
    }
    for (StuckNote& note : stuck_.look(ranks)) {
      lines.notes.push_back(std::move(note.text));
      if (note.culprit) stacks_.request(note.culprit->rank, note.culprit->pid);
    }
    for (std::string& line : stragglers_.look(paces, now)) {
      lines.notes.push_back(std::move(line));
    }
  }
  lines.stacks = stacks_.take_lines();
  return lines;
}

}  // namespace lockstep::launch

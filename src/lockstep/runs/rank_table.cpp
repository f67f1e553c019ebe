#include "lockstep/runs/rank_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::runs {
namespace {

// Longer than a rank normally waits for others or stays silent.
constexpr double kLongSeconds = 5;
// A rank that computes this much longer than the median is slow.
constexpr double kSlowFactor = 1.3;
constexpr double kSlowestNotable = 1e-3;  // Seconds per step.

struct ProcessFacts {
  char state = '-';
  int parent = 0;
};

// "4711 (name) S 1 ...": the name may hold anything.
ProcessFacts process_facts(int pid) {
  ProcessFacts facts;
  const auto stat = base::try_read_file(fmt::format("/proc/{}/stat", pid));
  if (!stat) return facts;
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= stat->size()) {
    return facts;
  }
  facts.state = (*stat)[name_end + 2];
  const std::string rest = stat->substr(name_end + 4);
  facts.parent = static_cast<int>(
      base::parse_integer(rest.substr(0, rest.find(' '))).value_or(0));
  return facts;
}

bool is_in_collective(const RankRow& row) {
  return row.page.rank.collectives_finished < row.page.rank.collectives_started;
}

double own_seconds(const RankRow& row) {
  if (!row.page.training || row.page.training->times.num_steps <= 0) return 0;
  const base::StepSeconds& times = row.page.training->times;
  return (times.data + times.compute) / static_cast<double>(times.num_steps);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[(values.size() - 1) / 2];
}

// Values over the whole job, to compare a rank's own with.
struct JobFacts {
  int64_t most_collectives = 0;
  int64_t fewest_collectives = INT64_MAX;
  double median_own_seconds = 0;
  bool has_lost_rank = false;
};

void set(RankRow& row, RankHealth health, std::string note) {
  row.health = health;
  row.note = std::move(note);
}

// What others wait for.
void judge_alone(RankRow& row, const JobFacts& job) {
  const base::RankStatus& rank = row.page.rank;
  if (rank.phase == base::Phase::kDone) return;
  if (row.process_state == '-' || row.process_state == 'Z') {
    set(row, RankHealth::kGone, "its process ended");
    return;
  }
  if (row.process_state == 'T' || row.process_state == 't') {
    set(row, RankHealth::kStopped,
        fmt::format("stopped by a signal; kill -CONT {} continues it",
                    rank.pid));
    return;
  }
  const bool is_behind = rank.collectives_started < job.most_collectives;
  if (is_behind && rank.silent_seconds > kLongSeconds) {
    set(row, RankHealth::kStuck,
        fmt::format("the others wait for it; silent for {}, {}",
                    base::duration_text(rank.silent_seconds),
                    base::phase_name(rank.phase)));
  }
}

// A rank may have entered the same collective before it was stopped: the
// numbers of both are equal then.
void judge_among_others(RankRow& row, const JobFacts& job) {
  const base::RankStatus& rank = row.page.rank;
  if (row.health != RankHealth::kOk || rank.phase == base::Phase::kDone) return;
  const bool waits =
      is_in_collective(row) && rank.collective_seconds > kLongSeconds;
  const bool is_ahead = job.fewest_collectives < rank.collectives_started;
  if (waits && (is_ahead || job.has_lost_rank)) {
    set(row, RankHealth::kWaiting,
        fmt::format("waits in {} for {}",
                    base::collective_name(rank.collective),
                    base::duration_text(rank.collective_seconds)));
    return;
  }
  const double own = own_seconds(row);
  if (own > kSlowFactor * job.median_own_seconds && own > kSlowestNotable &&
      job.median_own_seconds > 0) {
    set(row, RankHealth::kSlow,
        fmt::format("{:.0f}% longer per step than the median rank",
                    100 * (own / job.median_own_seconds - 1)));
  }
}

}  // namespace

std::string health_name(RankHealth health) {
  switch (health) {
    case RankHealth::kOk: return "ok";
    case RankHealth::kWaiting: return "waiting";
    case RankHealth::kSlow: return "slow";
    case RankHealth::kStuck: return "stuck";
    case RankHealth::kStopped: return "stopped";
    case RankHealth::kGone: return "gone";
  }
  return "unknown";
}

void judge_ranks(std::vector<RankRow>& rows) {
  JobFacts job;
  std::vector<double> own;
  for (const RankRow& row : rows) {
    const int64_t started = row.page.rank.collectives_started;
    job.most_collectives = std::max(job.most_collectives, started);
    job.fewest_collectives = std::min(job.fewest_collectives, started);
    own.push_back(own_seconds(row));
  }
  job.median_own_seconds = median(own);
  for (RankRow& row : rows) {
    judge_alone(row, job);
    job.has_lost_rank |= row.health != RankHealth::kOk;
  }
  for (RankRow& row : rows) judge_among_others(row, job);
}

std::vector<RankRow> read_ranks(const track::RunInfo& info) {
  if (info.pid <= 0) return {};
  // All pages are open in the launcher, the worker's parent.
  const ProcessFacts main = process_facts(info.pid);
  if (main.parent <= 0) return {};
  std::vector<RankRow> rows;
  for (const base::PageView& page : base::read_status_pages(main.parent)) {
    rows.push_back(
        {.page = page, .process_state = process_facts(page.rank.pid).state});
  }
  // The parent may be another program, or the number that of a new process.
  const bool is_this_job = std::any_of(
      rows.begin(), rows.end(),
      [&](const RankRow& row) { return row.page.rank.pid == info.pid; });
  if (!is_this_job) return {};
  judge_ranks(rows);
  return rows;
}

}  // namespace lockstep::runs

// Ranks that stay silent much longer than they usually do in that phase, and
// the one that the others wait for.
//
// The limit of a rank is ten times the 99th percentile of its stays in the
// phase, at least 1 s; none before 20 of them (launch/silence.h then has the
// fixed one). Only time in which the rank had its chance counts: neither what
// its threads waited for a CPU nor what the launcher missed. Nothing is ended
// here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/status.h"
#include "lockstep/launch/thread_times.h"

namespace lockstep::launch {

// A living rank of this node, as one look shows it.
struct WatchedRank {
  int rank = 0;
  pid_t pid = 0;
  base::RankStatus status = {};
  std::string stage = {};  // "phase loading data"
  // 99 of 100 stays in this stage are at most this long.
  std::optional<double> p99_seconds = {};
  int64_t sign_ns = 0;  // monotonic_ns() of its last sign of life

  bool is_in_collective() const {
    return status.collectives_started > status.collectives_finished;
  }
};

// One line for the user.
struct StuckNote {
  std::string text;
  // The rank whose stack explains it.
  struct Culprit {
    int rank = 0;
    pid_t pid = 0;
  };
  std::optional<Culprit> culprit = {};
};

// Where the facts come from; tests pass their own.
struct StuckSources {
  std::function<int64_t()> now_ns;
  std::function<char(pid_t)> state;  // letter of /proc/PID/stat
  std::function<ThreadTimes(pid_t)> threads;
  std::function<std::string(pid_t)> waiting;
};
StuckSources stuck_sources_of_system();

// One per attempt.
class StuckWatch {
 public:
  static constexpr double kLookSeconds = 0.2;

  explicit StuckWatch(StuckSources sources = stuck_sources_of_system());

  // To be called every kLookSeconds with the living ranks of this node.
  std::vector<StuckNote> look(std::span<const WatchedRank> ranks);

 private:
  struct Record {
    pid_t pid = 0;
    std::string stage = {};
    int64_t sign_ns = 0;
    double chance_seconds = 0;    // silence in which it could run
    double run_seconds = 0;       // CPU time of its threads in a part of that
    double measured_seconds = 0;  // length of that part
    ThreadTimes threads = {};     // at the last look; empty: not looked at
    bool is_reported = false;
    bool is_stopped = false;
    bool is_waiter = false;  // reported as one of ranks that all wait
    // By stage: the longest silence that was reported and ended by itself.
    std::map<std::string, double> known_silence = {};
  };

  std::optional<StuckNote> update(const WatchedRank& rank, double elapsed);
  std::optional<StuckNote> restart(const WatchedRank& rank, Record& record);
  std::optional<double> limit_of(const WatchedRank& rank) const;
  bool is_beyond(const WatchedRank& rank) const;
  // The ranks to name, the one furthest behind first.
  std::vector<const WatchedRank*> find_culprits(
      std::span<const WatchedRank> ranks);
  StuckNote note(const WatchedRank& culprit,
                 std::span<const WatchedRank> ranks) const;
  std::string process_text(const WatchedRank& rank) const;
  std::optional<StuckNote> common_wait(std::span<const WatchedRank> ranks);

  StuckSources sources_;
  int64_t looked_ns_ = 0;
  std::map<int, Record> records_;  // by rank
};

}  // namespace lockstep::launch

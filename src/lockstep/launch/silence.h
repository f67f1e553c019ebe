// Ranks that give no sign of life while no collective could time out.
//
// A sign of life is a note in the status page, output, or work: CPU time, bytes
// read or written, in the worker or a process that it started. A rank inside a
// collective has that collective's limit and is not judged here; programs that
// do not know Lockstep are not judged at all.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/launch/failure_report.h"
#include "lockstep/launch/process_activity.h"
#include "lockstep/launch/verdict.h"

namespace lockstep::launch {

// Result of one check of the ranks.
struct SilenceFinding {
  std::vector<std::string> warnings;  // lines for the user, once per rank
  std::vector<std::pair<int, pid_t>> warned;  // these ranks and their processes
  // All ranks are stuck beyond the limit: the job has to end.
  std::optional<Failure> failure;
};

// Where the facts come from; tests pass their own.
struct SilenceSources {
  std::function<int64_t()> now_ns;
  std::function<ProcessActivity(pid_t)> activity;
  std::function<std::string(pid_t)> waiting;
};
SilenceSources this_system();

// One per attempt.
class SilenceWatch {
 public:
  explicit SilenceWatch(double timeout_seconds,
                        SilenceSources sources = this_system());

  // To be called every few seconds.
  SilenceFinding look(std::span<const RankSnapshot> ranks);

 private:
  struct Record {
    pid_t pid = 0;
    // no value: gave a sign of life
    std::optional<ProcessActivity> activity = {};
    int64_t looked_ns = 0;
    int64_t worked_ns = 0;  // the last sign of life or work
    bool is_busy = false;   // worked between the last two looks
    bool is_warned = false;
  };

  void update(const RankSnapshot& rank, Record& record) const;
  double idle_seconds(const RankSnapshot& rank) const;
  bool is_worth_a_warning(const RankSnapshot& rank, const Record& record) const;
  std::string warning(const RankSnapshot& rank) const;
  std::optional<Failure> find_failure(
      std::span<const RankSnapshot> ranks) const;

  double timeout_seconds_;
  SilenceSources sources_;
  std::map<int, Record> records_;  // by rank
};

// The part of the report for such a failure.
std::string silence_verdict(std::span<const RankSnapshot> ranks,
                            double timeout_seconds);

}  // namespace lockstep::launch

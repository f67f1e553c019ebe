// One run in a line: what it is, how far it is, whether it lives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/runs/folder_tree.h"
#include "lockstep/runs/last_values.h"
#include "lockstep/runs/lock_table.h"
#include "lockstep/track/run_file.h"

namespace lockstep::runs {

enum class RunState {
  kRunning,
  kFinished,
  kStopped,  // By a signal, on request.
  kFailed,
  kUnknown,  // A folder without run.json, which no process holds.
};

// "running"
std::string state_name(RunState state);

// The launcher's, on a run that failed (verdict.json).
struct RunVerdict {
  std::string cause = {};  // Empty: there is none.
  std::string evidence = {};
  std::string meaning = {};
  std::string next = {};
  std::string see = {};

  bool operator==(const RunVerdict&) const = default;
};
// An empty one for a text that is not such a file.
RunVerdict parse_verdict(std::string_view text);

struct RunSummary {
  std::string id = {};  // Its path below the tree.
  RunState state = RunState::kUnknown;
  std::string reason = {};  // Why it is over; the last line of its console.
  RunVerdict verdict = {};
  track::RunInfo info = {};
  std::optional<int64_t> step = {};
  std::optional<double> loss = {};
  std::optional<StepValue> best = {};
  std::string best_name = {};
  std::optional<double> samples_per_second = {};
  int64_t last_sign = 0;  // Unix time of the last sign of life.

  bool operator==(const RunSummary&) const;
};

// The state at `now`, in unix time. `is_locked`: a process of this machine
// holds the run folder.
struct StateFacts {
  bool is_locked = false;
  bool is_this_host = true;
  int64_t last_sign = 0;
  int64_t now = 0;
};
RunState state_of(const std::optional<track::RunInfo>& info,
                  const StateFacts& facts);

// Reads one run again and again; only what is new costs time.
class RunWatcher {
 public:
  explicit RunWatcher(std::string id);

  RunSummary update(const FolderTree& tree, const LockTable& locks,
                    int64_t now);

 private:
  std::string id_;
  LastValues values_;
  std::string config_recipe_ = {};
};

}  // namespace lockstep::runs

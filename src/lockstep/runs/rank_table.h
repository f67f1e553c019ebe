// What every rank of a running training does, and which one holds up the
// others.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/status_view.h"
#include "lockstep/track/run_file.h"

namespace lockstep::runs {

enum class RankHealth {
  kOk,
  kWaiting,  // In a collective that another rank has not entered.
  kSlow,     // Computes longer than the others, which wait for it.
  kStuck,    // The others wait for it, or it shows no sign of life.
  kStopped,  // By a signal (SIGSTOP), or in a debugger.
  kGone,     // Its process ended.
};

std::string health_name(RankHealth health);

struct RankRow {
  base::PageView page = {};
  char process_state = '?';  // As in /proc/PID/stat; '-': gone.
  RankHealth health = RankHealth::kOk;
  std::string note = {};  // One sentence; empty for kOk.
};

// Fills health and note.
void judge_ranks(std::vector<RankRow>& rows);

// Reads the status pages of the run's launcher. Empty when the run was not
// started by Lockstep's launcher, belongs to another user or runs elsewhere.
std::vector<RankRow> read_ranks(const track::RunInfo& info);

}  // namespace lockstep::runs

// What a timeout means: who waited, who kept the others waiting.
//
// Pure functions over snapshots that the launcher takes before it ends
// anything.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>

#include "lockstep/base/status.h"
#include "lockstep/launch/failure_report.h"

namespace lockstep::launch {

// One rank at the moment of the first failure.
struct RankSnapshot {
  int rank = 0;
  int local_rank = 0;
  std::string place = {};  // "box (node 1)"; empty in a job of one node
  pid_t pid = 0;
  bool is_alive = false;
  int exit_code = 0;                       // of a rank that is not alive
  char state = '?';                        // letter of /proc/PID/stat
  std::optional<base::RankStatus> status;  // no value: not a Lockstep program
  // Time since its last output, where the launcher sees the output.
  std::optional<double> quiet_seconds;
  // "sleeping in pipe_read", of a living process, where it was looked at.
  std::string waiting;
  // In the loop of a trainer, which notes every batch: a long silence there is
  // a fault. A user's own loop promises nothing.
  bool is_paced = false;
  double ended_at = 0;  // wall clock; 0: it lives

  bool is_stopped() const { return state == 'T' || state == 't'; }
  bool is_in_collective() const;
  // In a collective, or ended by an error in it.
  bool has_waited() const;
};

// The limit of this rank's collectives: its own where it reports one.
double timeout_of(const RankSnapshot& rank, double timeout_seconds);

// True when the failure is a timeout: the worker reports it, exits with the
// code of TimeoutError, or aborts while a rank has reached its limit.
bool is_timeout(const Failure& failure, std::span<const RankSnapshot> ranks,
                double timeout_seconds);

// Lines "who waits, who stalls, how to change the limit".
std::string timeout_verdict(std::span<const RankSnapshot> ranks,
                            const Failure& failure, double timeout_seconds);

// The rank that left the others by exiting with 0, as a failure: no value
// unless the others failed by losing a peer or waiting for one.
std::optional<Failure> find_leaver(std::span<const RankSnapshot> ranks,
                                   std::span<const Failure> failures,
                                   double timeout_seconds);

// Parts of a verdict: "  stalled: rank 1 (pid 7); last collective ...\n"
std::string stalling_line(const RankSnapshot& rank, const char* title);
std::string limit_line(std::span<const RankSnapshot> ranks,
                       double timeout_seconds);
// ", step 4"; empty before the first step.
std::string step_text(const base::RankStatus& status);
// "all_reduce #13 (16.2 KiB)"
std::string collective_text(const base::RankStatus& status);
// "it is stopped (SIGSTOP); resume it with kill -CONT 7"
std::string stopped_text(const RankSnapshot& rank);

// "rank 2 had already exited with 0", one line per such rank; empty when there
// is none.
std::string early_exits(std::span<const RankSnapshot> ranks);

}  // namespace lockstep::launch

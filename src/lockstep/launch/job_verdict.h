// What follows from an attempt: another one, or the end of the job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/attempt.h"
#include "lockstep/launch/cause.h"
#include "lockstep/launch/node_changes.h"
#include "lockstep/launch/plan.h"
#include "lockstep/launch/restart_delay.h"

namespace lockstep::launch {

struct JobVerdict {
  bool is_restart = false;
  bool is_counted = true;    // this restart, against --max-restarts
  bool keeps_state = false;  // processes that live wait for the next world
  double delay_seconds = 0;  // before the restart
  int exit_code = 0;
  std::string text = {};                // for the user
  std::optional<Failure> cause = {};    // the root cause of a failed job
  std::optional<Verdict> finding = {};  // its class, where it was judged
  int stop_signal = 0;                  // that ended the job
  std::vector<int> departed = {};  // with the host, which leaves an elastic job
};

// Judges the attempts of one job, in their order.
class JobJudge {
 public:
  explicit JobJudge(const Plan& plan) : plan_(plan) {}

  // `result` is of all ranks of the job, however many nodes they are on, after
  // `num_restarts` that count; `changes` are those of an elastic job's nodes.
  JobVerdict judge(AttemptResult result, int num_restarts,
                   double attempt_seconds, int num_ranks,
                   const std::optional<NodeChanges>& changes = {});

 private:
  bool may_restart(const AttemptResult& result, int num_restarts) const;
  bool is_workers_input_error(const AttemptResult& result) const;
  bool explains_itself(const AttemptResult& result) const;
  Verdict find_cause(const AttemptResult& result) const;
  void tell_failure(const AttemptResult& result, int num_ranks,
                    JobVerdict& verdict) const;
  JobVerdict restart(const AttemptResult& result, int num_restarts,
                     double attempt_seconds, int num_ranks);
  JobVerdict conclude(const AttemptResult& result, int num_restarts,
                      double attempt_seconds, int num_ranks);
  JobVerdict judge_elastic(const AttemptResult& result, int num_restarts,
                           double attempt_seconds, int num_ranks,
                           const NodeChanges& changes);
  std::optional<JobVerdict> go_on(const AttemptResult& result,
                                  const std::optional<NodeChanges>& changes);
  std::optional<JobVerdict> regroup(const AttemptResult& result,
                                    double attempt_seconds,
                                    const NodeChanges& changes);

  const Plan& plan_;
  RestartDelay delay_;
  RecoveryLimit recoveries_;
};

}  // namespace lockstep::launch

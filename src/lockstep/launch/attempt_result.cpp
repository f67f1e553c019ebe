#include <algorithm>

#include "lockstep/launch/attempt.h"

namespace lockstep::launch {

// A worker that ended on request is a cause all the same when it had reported
// an error before the first death, or one of its own before the request:
// writing the report and dying take time.
void Attempt::collect_failures(AttemptResult& result) const {
  double first = 1e18;
  for (const Worker& worker : group_.workers) {
    if (worker.end && worker.end->exit_code != 0 && !worker.end->on_request) {
      first = std::min(first, worker.failure().unix_time);
    }
  }
  for (const Worker& worker : group_.workers) {
    if (!worker.end || worker.end->exit_code == 0) continue;
    Failure failure = worker.failure();
    const bool has_cause =
        failure.error && (failure.unix_time < first ||
                          (worker.has_reported && !is_consequence(failure)));
    if (worker.end->on_request && !has_cause) continue;
    result.failures.push_back(std::move(failure));
  }
}

// Before nodes regrouped: ranks of other nodes may have been stopped a moment
// earlier than those of this one, which lost them.
void Attempt::collect_earlier_failures(AttemptResult& result) const {
  for (const Worker& worker : group_.workers) {
    if (!worker.end || worker.end->on_request) continue;
    if (worker.end->exit_code == 0 || is_consequence(worker.failure())) {
      continue;
    }
    result.failures.push_back(worker.failure());
    result.kind = AttemptResult::Kind::kFailure;
  }
}

AttemptResult Attempt::result() {
  AttemptResult result;
  result.stop_signal = stop_signal_;
  result.is_leaving = is_leaving_;
  result.snapshots = std::move(snapshots_);
  result.survivors = std::move(survivors_);
  if (is_suspended_) {
    result.kind = AttemptResult::Kind::kSuspended;
    result.held = held_state(group_.workers);
    collect_failures(result);
    return result;
  }
  if (is_stopped_ || (is_regrouping_ && !surroundings_.keeps_state)) {
    const auto training = combine(trainings(Who::kAll));
    if (training) result.loss = loss_text(*training);
  }
  if (is_stopped_) {
    result.kind = AttemptResult::Kind::kStopped;
    return result;
  }
  if (is_regrouping_) {
    result.kind = AttemptResult::Kind::kRegrouped;
    collect_earlier_failures(result);
    return result;
  }
  result.is_overdue = overdue_.has_value();
  result.is_silent = is_silent_;
  if (overdue_) {
    result.failures.push_back(*overdue_);
  } else {
    collect_failures(result);
  }
  if (!result.failures.empty()) {
    result.kind = AttemptResult::Kind::kFailure;
  } else if (is_ordered_) {
    result.kind = AttemptResult::Kind::kEnded;
  }
  return result;
}

}  // namespace lockstep::launch

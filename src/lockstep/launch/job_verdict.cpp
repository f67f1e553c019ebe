#include "lockstep/launch/job_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "lockstep/base/environment.h"
#include "lockstep/base/signals.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/python_exit.h"
#include "lockstep/launch/succession.h"

namespace lockstep::launch {
namespace {

using Kind = AttemptResult::Kind;

const Failure& root_of(const AttemptResult& result) {
  return result.failures[find_root_cause(result.failures)];
}

std::string report_of(const Plan& plan, const AttemptResult& result,
                      int num_ranks, const std::optional<Verdict>& finding) {
  const Failure& root = root_of(result);
  std::string extra;
  if (result.is_silent) {
    extra = silence_verdict(result.snapshots, plan.timeout_seconds);
  } else if (is_timeout(root, result.snapshots, plan.timeout_seconds)) {
    extra = timeout_verdict(result.snapshots, root, plan.timeout_seconds);
  }
  extra += early_exits(result.snapshots);
  extra += result.memory_note;
  extra += python_exit_advice(plan.command, root);
  if (finding) {
    if (!extra.empty()) extra += std::string(kFrameWidth, '-') + "\n";
    extra += verdict_text(*finding);
  }
  return failure_report(plan.command.title, base::host_name(), result.failures,
                        extra, num_ranks);
}

std::string said(const std::string& text) { return "lockstep: " + text + "\n"; }

// "rank 3 (pid 17) on host1 (node 1) died by SIGKILL (step 41, backward) and is
// started again"
std::string death_text(const Failure& failure) {
  return fmt::format(
      "rank {} (pid {}){}{} died by {}{} and is started again", failure.rank,
      failure.pid, failure.place.empty() ? "" : " on ", failure.place,
      base::signal_name(-failure.exit_code),
      failure.position.empty() ? "" : fmt::format(" ({})", failure.position));
}

JobVerdict stopped(int signal, const std::optional<std::string>& loss) {
  JobVerdict verdict{.exit_code = 128 + signal, .stop_signal = signal};
  if (loss) {
    verdict.text = said(*loss);
    verdict.exit_code = kUnsavedExitCode;
  }
  return verdict;
}

}  // namespace

// A restart would not help.
bool JobJudge::is_workers_input_error(const AttemptResult& result) const {
  return plan_.runs_own_worker &&
         exit_code_for(result.failures) == kConfigExitCode;
}

// The worker has printed it; a report would not help.
bool JobJudge::explains_itself(const AttemptResult& result) const {
  return is_workers_input_error(result) || is_input_error(root_of(result));
}

bool JobJudge::may_restart(const AttemptResult& result,
                           int num_restarts) const {
  return result.kind == Kind::kFailure && result.stop_signal == 0 &&
         num_restarts < plan_.options.max_restarts &&
         !is_workers_input_error(result);
}

// An elastic job goes on with other nodes, however often they change. No value:
// the attempt ended for another reason.
std::optional<JobVerdict> JobJudge::regroup(const AttemptResult& result,
                                            double attempt_seconds,
                                            const NodeChanges& changes) {
  const bool is_loss = result.kind == Kind::kFailure &&
                       result.stop_signal == 0 &&
                       root_of(result).num_lost_ranks > 0;
  if (result.kind != Kind::kRegrouped && !is_loss) return std::nullopt;
  if (!changes.leavers.empty() && changes.num_nodes < plan_.nodes.min_nodes) {
    return stopped(SIGTERM, result.loss);
  }
  double delay = is_loss ? delay_.after(attempt_seconds) : 0;
  if (changes.num_silent > 0) {
    delay = std::max(delay, settle_seconds(plan_.nodes.settings));
  }
  std::string text = said(changes_text(changes, plan_.nodes, delay));
  if (result.loss) text += said(*result.loss);
  return JobVerdict{.is_restart = true,
                    .is_counted = false,
                    .delay_seconds = delay,
                    .text = std::move(text)};
}

JobVerdict JobJudge::restart(const AttemptResult& result, int num_restarts,
                             double attempt_seconds, int num_ranks) {
  const Failure& root = root_of(result);
  const double delay = delay_.after(attempt_seconds);
  const std::string when = delay > 0 ? " in " + base::duration_text(delay) +
                                           ", after repeated failures"
                                     : "";
  const bool is_node = root.num_lost_ranks > 0;
  const std::string who =
      is_node ? root.error->message
              : fmt::format("rank {}{}{} failed ({})", root.rank,
                            root.place.empty() ? "" : " on ", root.place,
                            ending_text(root));
  std::string text = said(fmt::format(
      "{}; all {} processes start again{} (restart {} of {})", who, num_ranks,
      when, num_restarts + 1, plan_.options.max_restarts));
  if (!root.meaning.empty()) {
    text += said(ending_text(root) + ": " + root.meaning);
  }
  return {.is_restart = true, .delay_seconds = delay, .text = std::move(text)};
}

Verdict JobJudge::find_cause(const AttemptResult& result) const {
  return find_verdict({.failures = result.failures,
                       .ranks = result.snapshots,
                       .timeout_seconds = plan_.timeout_seconds,
                       .has_memory_kills = result.has_memory_kills,
                       .shared_memory = shared_memory_size(),
                       .command = plan_.runs_own_worker
                                      ? command_text(plan_.options.arguments)
                                      : "",
                       .run_folder = result.run_folder});
}

void JobJudge::tell_failure(const AttemptResult& result, int num_ranks,
                            JobVerdict& verdict) const {
  if (explains_itself(result)) {
    const Failure& root = root_of(result);
    const auto finding =
        verdict_of_message(root.error ? root.error->message : "");
    if (finding) verdict.text = verdict_text(*finding);
    return;
  }
  // Why a node is lost, nobody can see from here.
  if (root_of(result).num_lost_ranks == 0) verdict.finding = find_cause(result);
  verdict.text = report_of(plan_, result, num_ranks, verdict.finding);
}

JobVerdict JobJudge::judge(AttemptResult result, int num_restarts,
                           double attempt_seconds, int num_ranks,
                           const std::optional<NodeChanges>& changes) {
  if (result.kind == Kind::kFailure && !result.is_overdue) {
    if (auto leaver = find_leaver(result.snapshots, result.failures,
                                  plan_.timeout_seconds)) {
      result.failures.push_back(*std::move(leaver));
    }
  }
  if (changes && !has_quorum(*changes) && result.kind != Kind::kStopped) {
    return {.exit_code = kPeerExitCode,
            .text = said(base::join(changes->losses, "; ") +
                         "; they may go on without this side, so the job ends "
                         "here")};
  }
  if (result.kind == Kind::kSuspended) {
    if (auto verdict = go_on(result, changes)) return *std::move(verdict);
    result.kind = Kind::kFailure;
  }
  return changes ? judge_elastic(result, num_restarts, attempt_seconds,
                                 num_ranks, *changes)
                 : conclude(result, num_restarts, attempt_seconds, num_ranks);
}

// With the state that the ranks have in memory; where too few nodes are left,
// it waits there for others. No value: ranks die again and again without a
// step.
std::optional<JobVerdict> JobJudge::go_on(
    const AttemptResult& result, const std::optional<NodeChanges>& changes) {
  std::vector<std::string> deaths;
  for (const Failure& failure : result.failures) {
    if (failure.num_lost_ranks == 0) deaths.push_back(death_text(failure));
  }
  if (!result.failures.empty() && !recoveries_.allows(result.held.num_steps)) {
    return std::nullopt;
  }
  JobVerdict verdict{
      .is_restart = true, .is_counted = false, .keeps_state = true};
  std::vector<std::string> parts = deaths;
  if (changes && (changes->has_news() || deaths.empty())) {
    if (changes->num_silent > 0) {
      verdict.delay_seconds = settle_seconds(plan_.nodes.settings);
    }
    if (changes->is_host_leaving) verdict.departed = changes->departed;
    parts.push_back(changes_text(*changes, plan_.nodes, verdict.delay_seconds));
  } else {
    for (const Failure& failure : result.failures) {
      if (failure.num_lost_ranks > 0) parts.push_back(failure.error->message);
    }
  }
  parts.emplace_back("the ranks that live keep their state");
  verdict.text = said(base::join(parts, "; "));
  return verdict;
}

JobVerdict JobJudge::judge_elastic(const AttemptResult& result,
                                   int num_restarts, double attempt_seconds,
                                   int num_ranks, const NodeChanges& changes) {
  auto verdict = regroup(result, attempt_seconds, changes);
  if (!verdict) {
    verdict = conclude(result, num_restarts, attempt_seconds, num_ranks);
  }
  if (!verdict->is_restart) return *verdict;
  if (changes.num_silent > 0) {
    verdict->delay_seconds =
        std::max(verdict->delay_seconds, settle_seconds(plan_.nodes.settings));
  }
  if (changes.is_host_leaving) verdict->departed = changes.departed;
  return *verdict;
}

JobVerdict JobJudge::conclude(const AttemptResult& result, int num_restarts,
                              double attempt_seconds, int num_ranks) {
  if (may_restart(result, num_restarts)) {
    return restart(result, num_restarts, attempt_seconds, num_ranks);
  }
  JobVerdict verdict;
  if (result.kind == Kind::kFailure) {
    tell_failure(result, num_ranks, verdict);
    verdict.exit_code = exit_code_for(result.failures);
    verdict.cause = root_of(result);
  } else if (result.kind == Kind::kStopped) {
    verdict = stopped(result.stop_signal, result.loss);
  } else if (result.kind == Kind::kAbandoned) {
    verdict.exit_code = 1;
  }
  return verdict;
}

}  // namespace lockstep::launch

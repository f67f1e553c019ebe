#include "lockstep/launch/overdue.h"

#include <fmt/format.h>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/worker.h"

namespace lockstep::launch {
namespace {

constexpr double kOverdueGraceSeconds = 5;

Failure overdue_failure(const RankSnapshot& rank, double limit) {
  return {.rank = rank.rank,
          .local_rank = rank.local_rank,
          .pid = rank.pid,
          .exit_code = kTimeoutExitCode,
          .unix_time = unix_now(),
          .error_file = "<N/A>",
          .error =
              base::ErrorReport{
                  .message = fmt::format(
                      "TimeoutError: {} #{} runs for {}, longer "
                      "than the limit of {}, and the worker did not "
                      "end itself; lockstep run ends the job",
                      base::collective_name(rank.status->collective),
                      rank.status->collectives_started,
                      base::duration_text(rank.status->collective_seconds),
                      base::duration_text(limit)),
                  .callstack = ""},
          .last_lines = {}};
}

}  // namespace

std::optional<Failure> find_overdue(std::span<const RankSnapshot> ranks,
                                    double timeout_seconds) {
  std::optional<Failure> found;
  double most_overdue = kOverdueGraceSeconds;
  for (const RankSnapshot& rank : ranks) {
    // The clock of a stopped rank means nothing, and its debugger decides.
    if (!rank.is_alive || !rank.is_in_collective() || rank.is_stopped()) {
      continue;
    }
    const double limit = timeout_of(rank, timeout_seconds);
    const double overdue = rank.status->collective_seconds - limit;
    if (overdue <= most_overdue) continue;
    most_overdue = overdue;
    found = overdue_failure(rank, limit);
  }
  return found;
}

}  // namespace lockstep::launch

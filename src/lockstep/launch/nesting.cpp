#include "lockstep/launch/nesting.h"

#include <fmt/format.h>

#include "lockstep/base/task_place.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

[[noreturn]] void refuse_nesting(const std::string& launcher, int64_t rank,
                                 int64_t size) {
  throw ConfigError(fmt::format(
      "this launcher is itself rank {0} of {1} of {2}: {1} launchers would run "
      "{1} jobs in the same folders. Let {2} start the worker "
      "('lockstep-worker train RECIPE ...', or your program), or leave {2} out "
      "and use 'lockstep train RECIPE --nproc {1}' or 'lockstep run --nproc "
      "{1} PROGRAM'; --standalone runs a separate job inside this rank",
      rank, size, launcher));
}

}  // namespace

void refuse_nested_launch(const base::Environment& environment, int num_nodes) {
  const bool is_in_torchrun = base::find(environment, "TORCHELASTIC_RUN_ID") ||
                              base::find(environment, "LOCKSTEP_LAUNCHER");
  if (is_in_torchrun) {
    const int64_t size =
        base::find_integer(environment, "WORLD_SIZE").value_or(1);
    if (size <= 1) return;
    refuse_nesting(base::find(environment, "LOCKSTEP_LAUNCHER") ? "lockstep run"
                                                                : "torchrun",
                   base::find_integer(environment, "RANK").value_or(0), size);
  }
  // One task per node is how a scheduler starts the launchers of a job.
  if (num_nodes > 1) return;
  if (const auto task = base::find_task_place(environment)) {
    refuse_nesting(task->launcher, task->rank, task->size);
  }
}

}  // namespace lockstep::launch

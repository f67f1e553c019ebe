#include "lockstep/launch/recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/signals.h"

namespace lockstep::launch {
namespace {

bool holds_state(const Worker& worker) {
  return worker.is_alive() && worker.recovery.is_ready();
}

bool is_over(const Worker& worker) { return worker.recovery.is_over(); }

bool is_alive_or_died_by_signal(const Worker& worker) {
  return worker.is_alive() || (worker.end && worker.end->exit_code < 0);
}

int64_t steps_done(std::span<const Worker> workers) {
  int64_t most = -1;
  for (const Worker& worker : workers) {
    if (const auto training = worker.training.read()) {
      most = std::max(most, training->num_steps);
    }
  }
  return most;
}

}  // namespace

bool RecoveryPolicy::allows(std::span<const Worker> workers) {
  if (!std::ranges::any_of(workers, holds_state) ||
      std::ranges::any_of(workers, is_over) ||
      !std::ranges::all_of(workers, is_alive_or_died_by_signal)) {
    return false;
  }
  const int64_t steps = steps_done(workers);
  without_step_ = steps > steps_ ? 0 : without_step_ + 1;
  if (without_step_ >= kMostWithoutStep) return false;
  steps_ = steps;
  ++generation_;
  return true;
}

std::string recovery_text(const Worker& worker, int generation) {
  const auto training = worker.training.read();
  return fmt::format(
      "rank {} (pid {}) died by {}{} and is started again; the other ranks "
      "keep their state (recovery {})",
      worker.rank, worker.pid, base::signal_name(-worker.end->exit_code),
      training ? fmt::format(" after step {}", training->num_steps) : "",
      generation);
}

}  // namespace lockstep::launch

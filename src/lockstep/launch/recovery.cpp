#include "lockstep/launch/recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/signals.h"

namespace lockstep::launch {
namespace {

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

HeldState held_state(std::span<const Worker> workers) {
  HeldState state{.num_steps = steps_done(workers)};
  for (const Worker& worker : workers) {
    const bool is_killed = worker.end && worker.end->exit_code < 0;
    if (worker.recovery.is_over() || !(worker.is_alive() || is_killed)) {
      state.can_go_on = false;
    }
    if (worker.is_alive() && worker.recovery.is_ready()) state.is_held = true;
  }
  return state;
}

bool RecoveryLimit::allows(int64_t num_steps) {
  without_step_ = num_steps > steps_ ? 0 : without_step_ + 1;
  if (without_step_ >= kMostWithoutStep) return false;
  steps_ = num_steps;
  return true;
}

bool RecoveryPolicy::allows(std::span<const Worker> workers) {
  const HeldState state = held_state(workers);
  if (!state.is_held || !state.can_go_on || !limit_.allows(state.num_steps)) {
    return false;
  }
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

#include "lockstep/engine/early_stopping_callback.h"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/engine/loop.h"

namespace lockstep::engine {

// A resumed training may have a larger patience than the one that stopped.
void EarlyStoppingCallback::begin(TrainLoop& loop) {
  loop.state().stopped_early = is_over(loop);
}

bool EarlyStoppingCallback::is_over(const TrainLoop& loop) const {
  return config_.patience &&
         loop.state().validations_without_progress >= *config_.patience;
}

void EarlyStoppingCallback::observe(TrainLoop& loop,
                                    const Observation& observation) {
  TrainState& state = loop.state();
  const double value = observation.value;
  const double sign = observation.better == Better::kLower ? 1 : -1;
  const bool is_progress =
      std::isfinite(value) &&
      (!state.progress || sign * (*state.progress - value) > config_.min_delta);
  if (is_progress) state.progress = value;
  state.validations_without_progress =
      is_progress ? 0 : state.validations_without_progress + 1;
  if (!is_over(loop)) return;
  state.stopped_early = true;
  loop.console().info(fmt::format(
      "early stopping at step {}: {} validations without progress; the best "
      "{} is {:.6g} of step {}",
      state.step, *config_.patience, observation.name,
      state.best.value.value_or(NAN), state.best.step));
}

}  // namespace lockstep::engine

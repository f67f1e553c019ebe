#include "lockstep/engine/plateau_callback.h"

#include <fmt/format.h>

#include "lockstep/engine/loop.h"

namespace lockstep::engine {

PlateauCallback::PlateauCallback(optim::PlateauConfig config)
    : config_(std::move(config)) {
  const optim::Plateau checked(config_);
}

void PlateauCallback::observe(TrainLoop& loop, const Observation& observation) {
  config_.mode = observation.better == Better::kLower ? "min" : "max";
  TrainState& state = loop.state();
  optim::Plateau plateau(config_);
  if (state.plateau) plateau.load(*state.plateau);
  const double before = plateau.factor();
  plateau.observe(observation.value);
  state.plateau = plateau.state();
  if (plateau.factor() == before) return;
  loop.console().info(
      fmt::format("no progress in {} validations: learning rate {:.6g}",
                  config_.patience + 1, loop.next_lr()));
}

}  // namespace lockstep::engine

// Lowers the learning rate when the observed metric stops improving: Python's
// ReduceLROnPlateau.
#pragma once

#include "lockstep/engine/callback.h"
#include "lockstep/optim/plateau.h"

namespace lockstep::engine {

// Its state is TrainState::plateau, by which the loop multiplies the learning
// rate.
class PlateauCallback final : public Callback {
 public:
  // `config.mode` comes from each observation. Throws ConfigError.
  explicit PlateauCallback(optim::PlateauConfig config);

  void observe(TrainLoop& loop, const Observation& observation) override;

 private:
  optim::PlateauConfig config_;
};

}  // namespace lockstep::engine

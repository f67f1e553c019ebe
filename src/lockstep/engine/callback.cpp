#include "lockstep/engine/callback.h"

namespace lockstep::engine {

void Callback::begin(TrainLoop& /*loop*/) {}
void Callback::after_step(TrainLoop& /*loop*/, const Step& /*step*/) {}
bool Callback::due(const TrainLoop& /*loop*/) const { return false; }
bool Callback::run(TrainLoop& /*loop*/) { return true; }
void Callback::observe(TrainLoop& /*loop*/,
                       const Observation& /*observation*/) {}
bool Callback::poll(TrainLoop& /*loop*/) { return true; }
void Callback::finish(TrainLoop& /*loop*/) {}

}  // namespace lockstep::engine

// What a training says of itself before its first step.
#pragma once

#include "lockstep/cli/session.h"
#include "lockstep/cli/training_parts.h"
#include "lockstep/engine/learner.h"
#include "lockstep/step_loader.h"
#include "lockstep/train_config.h"

namespace lockstep::cli {

// Device, batch, learning rate, data and model, and what looks like a mistake
// in them.
void log_setup(Session& session, const TrainConfig& config,
               const StepLoader& loader, const LearningRatePlan& plan,
               engine::Learner& learner);

}  // namespace lockstep::cli

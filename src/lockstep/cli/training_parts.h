// The parts of a training, made from its settings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/session.h"
#include "lockstep/engine/early_stopping_callback.h"
#include "lockstep/engine/logging_callback.h"
#include "lockstep/engine/plateau_callback.h"
#include "lockstep/engine/replica_check_callback.h"
#include "lockstep/engine/sampling_callback.h"
#include "lockstep/engine/validation_callback.h"
#include "lockstep/fid/image_scoring_callback.h"
#include "lockstep/run/saving_callback.h"
#include "lockstep/schedule.h"
#include "lockstep/step_loader.h"

namespace lockstep::cli {

// Throws ConfigError for data that cannot be trained on.
StepLoader make_step_loader(const Session& session, const TrainConfig& config);

struct LearningRatePlan {
  double base_lr = 0;  // Scaled for the number of processes.
  // Over the whole training. A different batch size than before changes the
  // number of remaining steps.
  int64_t total_steps = 0;
  ScheduleConfig schedule = {};
};

// For a training that continues from `state`. Throws ConfigError.
LearningRatePlan plan_learning_rate(const Session& session,
                                    const TrainConfig& config,
                                    const StepLoader& loader,
                                    const engine::TrainState& state);

// "learning rate 0.001 = 0.004 x effective batch 64 / 256"
std::string lr_text(const Session& session, const TrainConfig& config,
                    const LearningRatePlan& plan);

// `replicas` compares the ranks before anything is saved.
run::SavingConfig saving_config(const Settings& settings,
                                const base::TrainingStatusWriter& status,
                                engine::ReplicaCheckCallback& replicas);

// The callbacks of a training, except saving.
class TrainCallbacks {
 public:
  // Throws ConfigError, IoError or FormatError if the files of --fid_... cannot
  // be used. A collective.
  TrainCallbacks(const Session& session, const Settings& settings,
                 const LearningRatePlan& plan);

  // In the order in which the loop calls them.
  std::vector<engine::Callback*> with(run::SavingCallback& saving);

  engine::ReplicaCheckCallback& replicas() { return replicas_; }
  // Where this rank's time went.
  const track::StepTimes& times() const { return logging_.times(); }

  // The metric of image scores; empty without them.
  std::string score_metric() const {
    return scoring_ ? scoring_->metric() : "";
  }

 private:
  engine::LoggingCallback logging_;
  engine::ValidationCallback validation_;
  // Set if the task has the ability.
  std::optional<engine::SamplingCallback> sampling_;
  std::optional<fid::ImageScoringCallback> scoring_;
  std::optional<engine::PlateauCallback> plateau_;
  engine::EarlyStoppingCallback early_stopping_;
  engine::ReplicaCheckCallback replicas_;
};

}  // namespace lockstep::cli

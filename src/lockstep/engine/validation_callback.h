// Validates the model and lets the loop observe its metric.
#pragma once

#include <memory>
#include <string>

#include "lockstep/engine/callback.h"
#include "lockstep/engine/evaluation.h"
#include "lockstep/engine/interval.h"
#include "lockstep/engine/train_state.h"

namespace lockstep::engine {

struct ValidationConfig {
  std::shared_ptr<const Dataset> data = {};  // Null: no validation.
  Interval every = {};  // Also after the last step, unless 0.
  EvaluationConfig evaluation = {};
  // The metric that is observed.
  std::string metric = "loss";
  Better better = Better::kLower;
  LossHistory::Keep keep_losses = LossHistory::Keep::kLast;
};

class ValidationCallback final : public Callback {
 public:
  ValidationCallback(Task& task, ValidationConfig config);

  void after_step(TrainLoop& loop, const Step& step) override;
  bool due(const TrainLoop& loop) const override;
  bool run(TrainLoop& loop) override;

 private:
  Task& task_;
  ValidationConfig config_;
};

}  // namespace lockstep::engine

// Saves checkpoints: at intervals, for the best model, on signals and at the
// end.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "lockstep/base/training_status.h"
#include "lockstep/engine/callback.h"
#include "lockstep/engine/interval.h"
#include "lockstep/engine/train_state.h"
#include "lockstep/run/checkpoints.h"
#include "lockstep/run/stop_signals.h"

namespace lockstep::run {

struct SavingConfig {
  engine::Interval every = {};
  // Epochs between additional checkpoints named by epoch; 0: none.
  int64_t every_named_epochs = 0;
  bool is_dry_run = false;  // Nothing is written.
  // Save and end after this many steps of this start.
  std::optional<int64_t> stop_after_steps = {};
  // Steps of this start, where it is not the first of the loop: after ranks
  // were replaced.
  std::optional<int64_t> first_step = {};
  // Goes on from the memory of ranks.
  bool is_recovered = false;
  // Called before anything is saved.
  std::function<void(engine::TrainLoop&)> before_save = [](engine::TrainLoop&) {
  };
  base::TrainingStatusWriter status = {};  // For the launcher.
};

// Runs before slow callbacks, so that nothing is lost if they fail.
class SavingCallback final : public engine::Callback {
 public:
  SavingCallback(SavingConfig config, Checkpoints& checkpoints,
                 StopSignals& signals);

  // What stopped the training before its end; kNone when nothing did.
  StopRequest stopped_for() const { return stopped_for_; }

  void begin(engine::TrainLoop& loop) override;
  void after_step(engine::TrainLoop& loop, const Step& step) override;
  bool due(const engine::TrainLoop& loop) const override;
  bool run(engine::TrainLoop& loop) override;
  void observe(engine::TrainLoop& loop,
               const engine::Observation& observation) override;
  bool poll(engine::TrainLoop& loop) override;
  void finish(engine::TrainLoop& loop) override;

 private:
  StopRequest next_request(const engine::TrainLoop& loop);
  void save(engine::TrainLoop& loop, SaveRequest request);

  SavingConfig config_;
  Checkpoints& checkpoints_;
  StopSignals& signals_;
  std::unique_ptr<AgreedStop> agreed_stop_;
  int64_t first_step_ = 0;
  StopRequest stopped_for_ = StopRequest::kNone;
  bool has_just_saved_ = false;
  bool is_new_best_ = false;  // Not saved yet.
  engine::Best best_before_;
};

}  // namespace lockstep::run

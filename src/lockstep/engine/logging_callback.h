// Logs losses and speed, shows the progress bar, ends epochs.
#pragma once

#include <optional>
#include <string>

#include "lockstep/engine/callback.h"
#include "lockstep/engine/learner.h"
#include "lockstep/engine/train_state.h"
#include "lockstep/track/progress.h"
#include "lockstep/track/time_table.h"

namespace lockstep::engine {

struct LoggingConfig {
  int64_t every = 50;           // Steps.
  int64_t total_steps = 0;      // For the display.
  int64_t num_epochs = 0;       // For the display; 0: not known.
  double flops_per_sample = 0;  // Forward and backward; 0: not known.
  int64_t max_skipped_steps = 25;
  std::string warmup_flag = "--warmup_steps";  // For messages.
  LossHistory::Keep keep_losses = LossHistory::Keep::kLast;
  // Observe the training loss of each epoch; used without validation data.
  bool observes_loss = false;
};

// run() throws Error after too many steps in a row with a non-finite gradient.
class LoggingCallback final : public Callback {
 public:
  explicit LoggingCallback(LoggingConfig config);

  void begin(TrainLoop& loop) override;
  void after_step(TrainLoop& loop, const Step& step) override;
  bool due(const TrainLoop& loop) const override;
  bool run(TrainLoop& loop) override;
  // Ends the progress bar and logs where the time went.
  void finish(TrainLoop& loop) override;

  // This rank's, over all steps of run().
  const track::StepTimes& times() const { return times_; }

 private:
  void log(TrainLoop& loop);
  Metrics metrics_of(TrainLoop& loop, const Progress& progress,
                     double samples_per_second) const;
  void check_skipped(const TrainLoop& loop, const Progress& progress) const;
  void finish_epoch(TrainLoop& loop, int64_t epoch);
  track::ProgressState progress_state(const TrainLoop& loop) const;

  LoggingConfig config_;
  int64_t epoch_ = 0;  // Epoch of the last step, or of the first.
  int64_t first_step_ = 0;
  int64_t begin_ns_ = 0;
  Metrics last_log_;
  track::StepTimes times_;
};

}  // namespace lockstep::engine

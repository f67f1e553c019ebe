// The step loop: when to train, log, validate, sample, save and stop.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "lockstep/base/training_status.h"
#include "lockstep/engine/batch_size.h"
#include "lockstep/engine/evaluation.h"
#include "lockstep/engine/learner.h"
#include "lockstep/engine/step_timer.h"
#include "lockstep/fid/image_score.h"
#include "lockstep/run/run_state.h"
#include "lockstep/run/stop_signals.h"
#include "lockstep/schedule.h"
#include "lockstep/step_loader.h"
#include "lockstep/track/console.h"
#include "lockstep/track/tracker.h"

namespace lockstep {

struct LoopConfig {
  TrainConfig config = {};
  BatchSize batch = {};
  ScheduleConfig schedule = {};
  double base_lr = 0;       // Scaled for the number of processes.
  int64_t total_steps = 0;  // Of the whole run, for the display.
  DataSets data = {};
  std::filesystem::path folder = {};
  TrainingStatusWriter status = {};  // For the launcher.
};

// What a state is saved as; one file may have both names.
struct SaveRequest {
  bool as_checkpoint = true;
  bool as_best = false;
  bool is_last = false;  // The run ends: the file must be whole before.
};

// What the loop does not do itself. Called on all ranks at the same step.
struct LoopActions {
  std::function<void(const RunState&, const SaveRequest&)> save = {};
  // Whether the last best model could not be written.
  std::function<bool()> has_lost_best = {};
  // After each log, validation and sampling.
  std::function<void(Record)> record = {};
};

class TrainLoop {
 public:
  // Throws ConfigError, IoError or FormatError for files of scores that are of
  // no use. A collective.
  TrainLoop(Recipe& recipe, Learner& learner, StepLoader loader,
            const World& world, Console& console, LoopConfig config);
  ~TrainLoop();
  TrainLoop(const TrainLoop&) = delete;
  TrainLoop& operator=(const TrainLoop&) = delete;

  // Trains from `state` to the end. kNone when it is reached, else the signal
  // that all ranks stopped for, after saving. Throws Error when the gradient is
  // not finite for too long.
  StopRequest run(RunState state, const LoopActions& actions,
                  StopSignals& signals);

  int64_t step() const { return state_.step; }
  // The metric of scores; empty when there are none.
  std::string score_name() const { return score_ ? score_->name() : ""; }

 private:
  bool is_finished() const;
  void train_step();
  void note_due_work(const Step& step);
  bool do_due_work();
  bool validate();
  bool sample();
  bool sample_with(std::optional<int64_t> average);
  void prepare_score();
  bool score();
  void record_samples(const std::vector<OutputFile>& files);
  void record(Metrics metrics);
  void save(SaveRequest request);
  bool poll();
  GoOn go_on(const char* label, Activity activity);
  double current_lr() const;
  // By the key of a checkpoint that lists them; empty: there is none.
  static LossHistory::Keep kept_losses(const std::string& key) {
    return key.empty() ? LossHistory::Keep::kLast : LossHistory::Keep::kAll;
  }

  void log();
  void finish_epoch(int64_t epoch);
  void observe(double metric, const Metrics& metrics);
  void judge_skipped(const Progress& progress) const;
  ProgressState progress_state() const;
  void say_nothing_to_train() const;
  void show_times();

  Recipe& recipe_;
  Learner& learner_;
  World world_;
  Console& console_;
  const LoopConfig setup_;
  const TaskInfo facts_;
  StepLoader loader_;
  Plateau plateau_;
  StepTimer timer_;
  TrainingStatusWriter status_;
  std::unique_ptr<ImageScore> score_;  // Where it can become due.

  // Of one run().
  RunState state_;
  const LoopActions* actions_ = nullptr;
  std::unique_ptr<AgreedStop> wish_;
  std::unique_ptr<Batches> batches_;
  StopRequest stopped_for_ = StopRequest::kNone;
  bool has_just_saved_ = false;
  bool is_new_best_ = false;  // And not saved yet.
  Best best_before_;          // The last one.
  int64_t epoch_ = 0;  // Of the last step, or of the next before the first.
  int64_t first_step_ = 0;
  int64_t begin_ns_ = 0;
  int64_t busy_ns_ = 0;  // In steps, since the last log.
  int64_t samples_ = 0;  // The same.
  Metrics last_log_;
  StepTimes times_;
};

}  // namespace lockstep

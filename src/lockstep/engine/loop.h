// The step loop: trains, and calls the callbacks between steps.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/training_status.h"
#include "lockstep/engine/callback.h"
#include "lockstep/engine/evaluation.h"
#include "lockstep/engine/learner.h"
#include "lockstep/engine/out_of_memory.h"
#include "lockstep/engine/recovery_log.h"
#include "lockstep/engine/step_recorder.h"
#include "lockstep/engine/step_rollback.h"
#include "lockstep/engine/step_timer.h"
#include "lockstep/engine/train_state.h"
#include "lockstep/schedule.h"
#include "lockstep/step_loader.h"
#include "lockstep/track/console.h"
#include "lockstep/track/tracker.h"

namespace lockstep::engine {

struct LoopConfig {
  // End of the training: this many steps if set, else epochs.
  std::optional<int64_t> num_steps = {};
  int64_t num_epochs = 1;
  ScheduleConfig schedule = {};
  double base_lr = 0;  // Scaled for the number of processes.
  base::TrainingStatusWriter status = {};  // For the launcher.
  // Called on all ranks; empty: nothing is recorded.
  std::function<void(track::Record)> record = {};
  StepRecorderConfig cuda_graphs = {};
  RecoveryLog* recovery = nullptr;  // Not owned; null: none.
  bool is_recovered = false;        // Goes on from the memory of ranks.
  OnOutOfMemory on_out_of_memory = OnOutOfMemory::kFail;
};

// Totals over the steps since the last call.
struct StepTotals {
  int64_t num_samples = 0;  // Over all ranks.
  int64_t busy_ns = 0;
  track::StepTimes times = {};
};

class TrainLoop {
 public:
  TrainLoop(Learner& learner, StepLoader loader, const World& world,
            track::Console& console, LoopConfig config);
  TrainLoop(const TrainLoop&) = delete;
  TrainLoop& operator=(const TrainLoop&) = delete;

  // Trains from `state` to the end, or until a callback's poll() stops it. The
  // callbacks are called in this order.
  void run(TrainState state, std::vector<Callback*> callbacks);

  // The following functions are for callbacks.
  Learner& learner() { return learner_; }
  const World& world() const { return world_; }
  track::Console& console() { return console_; }
  TrainState& state() { return state_; }
  const TrainState& state() const { return state_; }
  bool is_finished() const;
  double next_lr() const;

  void observe(const Observation& observation);
  void record(Metrics metrics);
  void record(track::Record record);
  // Returns a function that polls between batches of a callback's work and
  // shows its progress as `label`.
  GoOn go_on(const char* label, base::Activity activity);
  // Waits for the device.
  StepTotals take_totals();
  const StepRecorder& recorder() const { return recorder_; }
  // Samples of one micro-batch on one rank, as long as memory lasts.
  int64_t micro_batch_size() const { return loader_.config().micro_batch_size; }

 private:
  void train_step();
  Step begin_and_run_step();
  Step run_step_within_memory();
  void halve_batch();
  [[noreturn]] void halve_batch_of_all_ranks();
  BatchSize batch_size() const;
  Step run_step();
  Step run_whole_step();
  Batch next_batch();
  void compute_gradients(const Batch& batch);
  void update();
  void train();
  bool run_callbacks();
  void require_ranks() const;
  void commit();
  void pass_records_on();
  bool poll();
  void say_nothing_to_train() const;

  Learner& learner_;
  StepLoader loader_;
  World world_;
  track::Console& console_;
  LoopConfig config_;
  StepTimer timer_;
  StepRecorder recorder_;
  std::optional<StepRollback> rollback_;  // Where a step may be repeated.

  // Per run().
  TrainState state_;
  std::vector<Callback*> callbacks_;
  std::unique_ptr<Batches> batches_;
  StepTotals totals_;
  // Records of the running callback, where its work may be repeated.
  std::vector<track::Record> new_records_;
};

}  // namespace lockstep::engine

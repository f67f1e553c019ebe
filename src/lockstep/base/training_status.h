// Progress of a training, the step of its newest checkpoint and where its time
// goes. The launcher decides by the first two how long to wait for a training
// that was asked to stop; `lockstep board` shows all of it.
//
// Lies in the reserved part of the status page (base/status.h), which older
// launchers ignore and older workers leave zero. Every field is an atomic
// number.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/duration_counts.h"
#include "lockstep/base/environment.h"

namespace lockstep::base {

// What a training does between two moments at which it can stop.
enum class Activity : int32_t {
  kNone,
  kStep,
  kValidation,
  kSampling,
  kScoring,
  kSaving,
  kFinishing,  // The loop is over; no more work to save.
};

// "a validation batch"
std::string activity_name(Activity activity);

struct TrainingPage {
  static constexpr int32_t kVersion = 1;
  static constexpr int kOffset = 2048;  // In the status page.
  static constexpr size_t kNumActivities = 8;

  std::atomic<int32_t> version;  // 0: no trainer writes here.
  std::atomic<int32_t> activity;
  std::atomic<int64_t> activity_begin_ns;  // monotonic_ns()
  std::array<std::atomic<int64_t>, kNumActivities> typical_ns;  // 0: unknown.
  std::atomic<int64_t> save_begin_ns;
  std::atomic<int64_t> num_steps;   // Completed.
  std::atomic<int64_t> saved_step;  // The newest checkpoint's; -1: none.
  // StepSeconds in nanoseconds; older workers leave them zero.
  std::atomic<int64_t> timed_steps;
  std::atomic<int64_t> data_ns;
  std::atomic<int64_t> compute_ns;
  std::atomic<int64_t> exchange_ns;
  std::atomic<int64_t> other_ns;
  std::array<DurationCounts, kNumActivities> durations;
};

// Where the time of one rank went, summed over its last steps; the latest weigh
// most.
struct StepSeconds {
  int64_t num_steps = 0;  // 0: not measured yet.
  double data = 0;        // Waiting for the loader.
  double compute = 0;     // Forward, backward, optimizer.
  double exchange = 0;    // Waiting for gradients of other ranks.
  double other = 0;       // Checkpoints, evaluation, logging.
};

// A training at one moment.
struct TrainingStatus {
  Activity activity = Activity::kNone;
  double activity_seconds = 0;  // Since it began.
  double typical_seconds = 0;   // How long this activity takes; 0: unknown.
  double saving_seconds = 0;    // How long a checkpoint takes; 0: unknown.
  int64_t num_steps = 0;
  int64_t saved_step = -1;
  StepSeconds times = {};
  int64_t activity_begin_ns = 0;  // monotonic_ns()
  // 99 of 100 such activities are at most this long (DurationCounts).
  std::optional<double> activity_p99_seconds = {};
};

// No value unless a training writes there.
std::optional<TrainingStatus> read_training_page(const TrainingPage& page);

// The launcher's side.
class TrainingStatusReader {
 public:
  // The descriptor of a StatusReader.
  explicit TrainingStatusReader(int status_fd);

  // No value unless a training that saves checkpoints is running or has run.
  std::optional<TrainingStatus> read() const;

 private:
  std::shared_ptr<const TrainingPage> page_;
};

// The worker's side. Copies write to the same page; begin() and end() belong to
// one thread, note_saved() may be called by another one.
class TrainingStatusWriter {
 public:
  TrainingStatusWriter();  // Writes to a private page that nobody reads.

  // The page named in LOCKSTEP_STATUS_FD; a private one when there is none.
  static TrainingStatusWriter from_environment(const Environment& environment);

  // From here on the launcher waits for a checkpoint after Ctrl-C.
  void start(int64_t num_steps, std::optional<int64_t> saved_step);
  // After other ranks were replaced: what was saved stays known.
  void go_on(int64_t num_steps);
  // Ends the activity before and notes how long it took.
  void begin(Activity activity);
  void set_num_steps(int64_t num_steps);
  // Since the last begin().
  double activity_seconds() const;
  // Before a checkpoint is copied, and when its file is complete.
  void start_save();
  void note_saved(int64_t step);
  void add_times(const StepSeconds& times);

 private:
  std::shared_ptr<TrainingPage> page_;
};

}  // namespace lockstep::base

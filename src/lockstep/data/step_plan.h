// Which samples each optimizer step takes, on any number of processes.
//
// The order of an epoch is a function of (seed, epoch); step k takes its k-th
// slice of the global batch size. Inside a slice rank r reads every size-th
// sample from the r-th on, in micro-batches. So the samples of a step do not
// depend on the number of processes, and a run may go on with another one in
// the middle of an epoch: each sample is still seen once.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/distributed_sampler.h"

namespace lockstep {

struct StepPlanConfig {
  int64_t num_samples = 0;
  int64_t global_batch = 1;  // Samples of a step, all processes together.
  int64_t micro_batch = 1;   // Samples of one forward pass on one process.
  uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;  // Leave out an epoch's last step that is not full.
  // Steps of an epoch that are used; unset: all.
  std::optional<int64_t> max_steps_per_epoch = {};
  // Of all samples, to take similar ones together; empty: no matter.
  std::vector<int64_t> lengths = {};
  // Every epoch repeats the samples of the first.
  bool repeat_first_epoch = false;
};

struct EpochPosition {
  int64_t epoch = 0;
  int64_t sample = 0;  // Samples of the epoch's order already used.
};

struct Step {
  EpochPosition begin = {};
  int64_t num_samples = 0;        // Of all processes together.
  int64_t num_micro_batches = 0;  // The same on every process.
  EpochPosition next = {};
  bool ends_epoch() const { return next.epoch != begin.epoch; }
};

// Immutable but for a cache of the current epoch's order: one thread at a time.
class StepPlan {
 public:
  // Throws ConfigError for an empty data set, fewer samples than processes, or
  // an epoch without a step.
  StepPlan(const StepPlanConfig& config, Shard share);

  // The step that starts at `position`.
  Step step_at(EpochPosition position) const;

  // This process's micro-batches of a step, `num_micro_batches` of them.
  std::vector<BatchRequest> requests(const Step& step);

  int64_t steps_per_epoch() const;
  // From a position to the end of epoch `num_epochs` - 1.
  int64_t steps_until(EpochPosition position, int64_t num_epochs) const;
  // Samples of an epoch that are used.
  int64_t samples_per_epoch() const;

 private:
  const std::vector<int64_t>& order(int64_t epoch);

  StepPlanConfig config_;
  Shard share_;
  int64_t cached_epoch_ = -1;
  std::vector<int64_t> cached_order_;
};

// The requests of a whole run from a position on: a RequestSequence without
// end. The reader walks the same steps with step_at().
class StepRequests {
 public:
  StepRequests(StepPlan plan, EpochPosition first)
      : plan_(std::move(plan)), position_(first) {}

  std::optional<BatchRequest> operator()();

 private:
  StepPlan plan_;
  EpochPosition position_;
  std::deque<BatchRequest> ready_;
};

}  // namespace lockstep

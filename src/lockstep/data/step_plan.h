// Which samples each optimizer step takes: the order behind StepLoader.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/data/batch_request.h"
#include "lockstep/distributed_sampler.h"

namespace lockstep::data {

struct StepPlanConfig {
  int64_t num_samples = 0;
  int64_t global_batch = 1;  // Samples per step, over all processes.
  int64_t micro_batch = 1;   // Samples per forward pass on one process.
  uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;  // Leave out an epoch's last step if it is not full.
  // Steps of an epoch that are used; unset: all.
  std::optional<int64_t> max_steps_per_epoch = {};
  // Lengths of all samples, to take similar ones together; empty: no matter.
  std::vector<int64_t> lengths = {};
  // Every epoch repeats the samples of the first.
  bool repeat_first_epoch = false;
};

// Immutable but for a cache of the current epoch's order: one thread at a time.
class StepPlan {
 public:
  // Throws ConfigError for an empty data set, fewer samples than processes, or
  // an epoch without a step.
  StepPlan(const StepPlanConfig& config, Shard shard);

  // The step that starts at `position`.
  Step step_at(DataPosition position) const;

  // This process's micro-batches of a step, `num_micro_batches` of them.
  std::vector<BatchRequest> requests(const Step& step);

  int64_t steps_per_epoch() const;
  // From a position to the end of epoch `num_epochs` - 1.
  int64_t steps_until(DataPosition position, int64_t num_epochs) const;
  // Samples of an epoch that are used.
  int64_t samples_per_epoch() const;

 private:
  const std::vector<int64_t>& order(int64_t epoch);

  StepPlanConfig config_;
  Shard shard_;
  int64_t cached_epoch_ = -1;
  std::vector<int64_t> cached_order_;
};

// The requests of a whole training from a position on: a RequestSequence
// without end.
class StepRequests {
 public:
  StepRequests(StepPlan plan, DataPosition first)
      : plan_(std::move(plan)), position_(first) {}

  std::optional<BatchRequest> operator()();

 private:
  StepPlan plan_;
  DataPosition position_;
  std::deque<BatchRequest> ready_;
};

}  // namespace lockstep::data

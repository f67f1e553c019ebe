// StepLoader: the batches of a training, the same on any number of processes.
//
// The order of an epoch is a function of (seed, epoch). Step k takes the k-th
// slice of global_batch_size samples; rank r of n reads every n-th sample of
// the slice from the r-th on, in micro-batches. So the samples of a step do not
// depend on the number of processes, and a training may resume with another
// number in the middle of an epoch: each sample is still seen once.
//
//   for (const Batch& batch : batches) {
//     const auto no_sync = ddp.no_sync(!batch.ends_step());
//     at::Tensor loss = sum_of_losses(ddp(batch[0]), batch[1]);
//     if (batch.is_filler) loss = loss * 0;
//     // DDP averages over ranks: this gives the gradient of the step's mean.
//     (loss * world.size() / batch.step.num_samples).backward();
//     if (!batch.ends_step()) continue;
//     optimizer.step();
//   }
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "lockstep/dataset.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/export.h"
#include "lockstep/loader.h"
#include "lockstep/world.h"

namespace lockstep::data {
class StepPlan;
}  // namespace lockstep::data

namespace lockstep {

struct StepLoaderConfig {
  int64_t global_batch_size = 1;  // Samples per step, over all ranks.
  int64_t micro_batch_size = 1;   // Samples per forward pass on one rank.
  int workers = 2;                // Threads; 0 loads in the caller's thread.
  int64_t prefetch_batches = 2;   // Finished batches kept ahead, at least 1.
  uint64_t seed = 0;  // Order and augmentation; equal on every rank.
  bool shuffle = true;
  bool drop_last = false;  // Drop an epoch's last step if it is not full.
  // Maximum steps per epoch; unset: all.
  std::optional<int64_t> max_steps_per_epoch = {};
  // Every epoch repeats the samples of the first.
  bool repeat_first_epoch = false;
};

// Immutable. Samples of similar length come together where the data set has
// Dataset::lengths().
class LOCKSTEP_EXPORT StepLoader {
 public:
  // Throws ConfigError for a bad config, an empty data set, fewer samples than
  // processes, or an epoch without a step.
  StepLoader(std::shared_ptr<const Dataset> dataset, const World& world,
             StepLoaderConfig config);
  // Without a world: explicit shard and device.
  StepLoader(std::shared_ptr<const Dataset> dataset, Shard shard,
             c10::Device device, StepLoaderConfig config);

  // Every step from `first` on, epoch after epoch, without end. Each rank gets
  // Step::num_micro_batches batches per step. To resume: Batch::next.
  Batches batches(DataPosition first = {}) const;

  // The same steps, with the same samples and seeds, in micro-batches of
  // another size; as many samples are kept ahead.
  StepLoader with_micro_batches_of(int64_t num_samples) const;

  int64_t steps_per_epoch() const;
  // From a position to the end of epoch `num_epochs` - 1.
  int64_t steps_until(DataPosition position, int64_t num_epochs) const;

  const StepLoaderConfig& config() const { return config_; }
  const Dataset& dataset() const { return *dataset_; }

 private:
  std::shared_ptr<const Dataset> dataset_;
  Shard shard_;
  c10::Device device_;
  StepLoaderConfig config_;
  std::shared_ptr<const data::StepPlan> plan_;
  std::shared_ptr<const base::StatusWriter> status_;
};

}  // namespace lockstep

#include "lockstep/step_loader.h"

#include "lockstep/base/divide.h"
#include "lockstep/base/status.h"
#include "lockstep/data/batch_stream.h"
#include "lockstep/data/step_plan.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

data::StepPlanConfig plan_config(const Dataset* dataset,
                                 const StepLoaderConfig& config) {
  if (dataset == nullptr) {
    throw ConfigError("StepLoader got no data set (a null pointer)");
  }
  data::require_at_least("global_batch_size", config.global_batch_size, 1);
  data::require_at_least("micro_batch_size", config.micro_batch_size, 1);
  data::require_at_least("workers", config.workers, 0);
  data::require_at_least("prefetch_batches", config.prefetch_batches, 1);
  return {.num_samples = dataset->size(),
          .global_batch = config.global_batch_size,
          .micro_batch = config.micro_batch_size,
          .seed = config.seed,
          .shuffle = config.shuffle,
          .drop_last = config.drop_last,
          .max_steps_per_epoch = config.max_steps_per_epoch,
          .lengths = dataset->lengths(),
          .repeat_first_epoch = config.repeat_first_epoch};
}

}  // namespace

StepLoader::StepLoader(std::shared_ptr<const Dataset> dataset,
                       const World& world, StepLoaderConfig config)
    : StepLoader(std::move(dataset), Shard{world.rank(), world.size()},
                 world.device(), config) {
  status_ = std::make_shared<base::StatusWriter>(world.status());
}

StepLoader::StepLoader(std::shared_ptr<const Dataset> dataset, Shard shard,
                       c10::Device device, StepLoaderConfig config)
    : dataset_(std::move(dataset)),
      shard_(shard),
      device_(device),
      config_(config),
      plan_(std::make_shared<const data::StepPlan>(
          plan_config(dataset_.get(), config), shard)),
      status_(std::make_shared<base::StatusWriter>()) {}

Batches StepLoader::batches(DataPosition first) const {
  return data::stream_batches(dataset_, data::StepRequests(*plan_, first),
                              {.seed = config_.seed,
                               .workers = config_.workers,
                               .prefetch_batches = config_.prefetch_batches,
                               .device = device_},
                              *status_);
}

StepLoader StepLoader::with_micro_batches_of(int64_t num_samples) const {
  data::require_at_least("micro_batch_size", num_samples, 1);
  StepLoaderConfig config = config_;
  config.micro_batch_size = num_samples;
  config.prefetch_batches = base::divide_up(
      config_.prefetch_batches * config_.micro_batch_size, num_samples);
  StepLoader loader(dataset_, shard_, device_, config);
  loader.status_ = status_;
  return loader;
}

int64_t StepLoader::steps_per_epoch() const { return plan_->steps_per_epoch(); }

int64_t StepLoader::steps_until(DataPosition position,
                                int64_t num_epochs) const {
  return plan_->steps_until(position, num_epochs);
}

}  // namespace lockstep

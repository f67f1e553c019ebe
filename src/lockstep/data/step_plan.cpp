#include "lockstep/data/step_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/divide.h"
#include "lockstep/data/length_order.h"
#include "lockstep/error.h"

namespace lockstep::data {

StepPlan::StepPlan(const StepPlanConfig& config, Shard shard)
    : config_(config), shard_(shard) {
  if (config.num_samples <= 0) {
    throw ConfigError(
        "the training data set is empty: check its path and what is in it");
  }
  if (config.num_samples < shard.size) {
    throw ConfigError(fmt::format(
        "the training data set has {} sample{} for {} processes: use at most "
        "{} processes, or more data",
        config.num_samples, config.num_samples == 1 ? "" : "s", shard.size,
        config.num_samples));
  }
  if (samples_per_epoch() == 0) {
    throw ConfigError(fmt::format(
        "an epoch has no step: {} samples do not fill one global batch of {} "
        "and --drop_last leaves out smaller ones; use a smaller batch or "
        "--no_drop_last",
        config.num_samples, config.global_batch));
  }
}

int64_t StepPlan::samples_per_epoch() const {
  int64_t samples = config_.num_samples;
  if (config_.drop_last) samples -= samples % config_.global_batch;
  if (config_.max_steps_per_epoch) {
    samples =
        std::min(samples, *config_.max_steps_per_epoch * config_.global_batch);
  }
  return samples;
}

int64_t StepPlan::steps_per_epoch() const {
  return base::divide_up(samples_per_epoch(), config_.global_batch);
}

int64_t StepPlan::steps_until(DataPosition position, int64_t num_epochs) const {
  if (position.epoch >= num_epochs) return 0;
  const int64_t left =
      std::max<int64_t>(0, samples_per_epoch() - position.sample);
  return base::divide_up(left, config_.global_batch) +
         (num_epochs - position.epoch - 1) * steps_per_epoch();
}

Step StepPlan::step_at(DataPosition position) const {
  // A run that goes on with another batch size may stand behind the last step.
  if (position.sample >= samples_per_epoch()) {
    position = {.epoch = position.epoch + 1, .sample = 0};
  }
  Step step{.begin = position};
  step.num_samples =
      std::min(config_.global_batch, samples_per_epoch() - position.sample);
  const int64_t largest_shard = base::divide_up(step.num_samples, shard_.size);
  step.num_micro_batches = base::divide_up(largest_shard, config_.micro_batch);
  step.next = {.epoch = position.epoch,
               .sample = position.sample + step.num_samples};
  if (step.next.sample >= samples_per_epoch()) {
    step.next = {.epoch = position.epoch + 1, .sample = 0};
  }
  return step;
}

const std::vector<int64_t>& StepPlan::order(int64_t epoch) {
  if (config_.repeat_first_epoch) epoch = 0;
  if (epoch != cached_epoch_) {
    const DistributedSampler everything(
        config_.num_samples, Shard{},
        {.seed = config_.seed, .shuffle = config_.shuffle});
    cached_order_ = everything.indices(epoch);
    if (config_.shuffle && !config_.lengths.empty()) {
      cached_order_ = order_by_length(std::move(cached_order_), config_.lengths,
                                      {.seed = config_.seed, .epoch = epoch});
    }
    cached_epoch_ = epoch;
  }
  return cached_order_;
}

std::vector<BatchRequest> StepPlan::requests(const Step& step) {
  const std::vector<int64_t>& all = order(step.begin.epoch);
  const int64_t end = step.begin.sample + step.num_samples;
  std::vector<int64_t> own;
  for (int64_t i = step.begin.sample + shard_.rank; i < end; i += shard_.size) {
    own.push_back(all[i]);
  }
  std::vector<BatchRequest> requests;
  const auto num_own = static_cast<int64_t>(own.size());
  for (int64_t k = 0; k < step.num_micro_batches; ++k) {
    const int64_t first = std::min(k * config_.micro_batch, num_own);
    const int64_t last = std::min(first + config_.micro_batch, num_own);
    const bool is_last = k + 1 == step.num_micro_batches;
    BatchRequest request{.indices = {own.begin() + first, own.begin() + last},
                         .epoch = step.begin.epoch,
                         .next = is_last ? step.next : step.begin,
                         .is_filler = first == last,
                         .step = step,
                         .micro_batch = k};
    if (request.is_filler) {
      // As many as usual: a single one is too few for a BatchNorm.
      const auto count = std::min<int64_t>(config_.micro_batch, all.size());
      request.indices = {all.begin(), all.begin() + count};
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

std::optional<BatchRequest> StepRequests::operator()() {
  if (ready_.empty()) {
    const Step step = plan_.step_at(position_);
    position_ = step.next;
    for (BatchRequest& request : plan_.requests(step)) {
      ready_.push_back(std::move(request));
    }
  }
  BatchRequest request = std::move(ready_.front());
  ready_.pop_front();
  return request;
}

}  // namespace lockstep::data

#include "lockstep/loader.h"

#include <fmt/format.h>

#include "lockstep/base/status.h"
#include "lockstep/data/batch_stream.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

int64_t size_of(const std::shared_ptr<const Dataset>& dataset) {
  if (dataset == nullptr) {
    throw ConfigError("Loader got no data set (a null pointer)");
  }
  return dataset->size();
}

SamplerConfig sampler_config(const LoaderConfig& config) {
  return {
      .seed = config.seed, .shuffle = config.shuffle, .uneven = config.uneven};
}

// Cuts this rank's samples of one epoch into batches.
class EpochRequests {
 public:
  EpochRequests(std::vector<int64_t> indices, const LoaderConfig& config,
                DataPosition first)
      : indices_(std::move(indices)), config_(config), next_(first) {}

  std::optional<data::BatchRequest> operator()() {
    const auto total = static_cast<int64_t>(indices_.size());
    const int64_t begin = next_.sample;
    const int64_t end = std::min(begin + config_.batch_size, total);
    const int64_t least = config_.drop_last_batch ? config_.batch_size : 1;
    if (end - begin < least) return std::nullopt;
    next_.sample = end;
    return data::BatchRequest{
        .indices = {indices_.begin() + begin, indices_.begin() + end},
        .epoch = next_.epoch,
        .next = next_};
  }

 private:
  std::vector<int64_t> indices_;
  LoaderConfig config_;
  DataPosition next_;
};

}  // namespace

Loader::Loader(std::shared_ptr<const Dataset> dataset, const World& world,
               LoaderConfig config)
    : Loader(std::move(dataset), Shard{world.rank(), world.size()},
             world.device(), config) {
  status_ = std::make_shared<base::StatusWriter>(world.status());
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, Shard shard,
               c10::Device device, LoaderConfig config)
    : dataset_(std::move(dataset)),
      device_(device),
      config_(config),
      sampler_(size_of(dataset_), shard, sampler_config(config)),
      status_(std::make_shared<base::StatusWriter>()) {
  data::require_at_least("batch_size", config.batch_size, 1);
  data::require_at_least("workers", config.workers, 0);
  data::require_at_least("prefetch_batches", config.prefetch_batches, 1);
}

int64_t Loader::batches_per_epoch() const {
  const int64_t samples = sampler_.size();
  if (config_.drop_last_batch) return samples / config_.batch_size;
  return (samples + config_.batch_size - 1) / config_.batch_size;
}

Batches Loader::resume(DataPosition position) const {
  if (position.sample < 0 || position.sample > sampler_.size()) {
    throw ConfigError(fmt::format(
        "cannot start at sample {}: an epoch has {} samples here (another "
        "number of processes than before?)",
        position.sample, sampler_.size()));
  }
  return data::stream_batches(
      dataset_,
      EpochRequests(sampler_.indices(position.epoch), config_, position),
      {.seed = config_.seed,
       .workers = config_.workers,
       .prefetch_batches = config_.prefetch_batches,
       .device = device_},
      *status_);
}

}  // namespace lockstep

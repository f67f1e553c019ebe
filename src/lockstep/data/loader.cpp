#include "lockstep/data/loader.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/data/batch_stream.h"

namespace lockstep {
namespace {

void check(const LoaderConfig& config) {
  const auto require = [](bool holds, const char* name, int64_t value,
                          int64_t least) {
    if (holds) return;
    throw ConfigError(fmt::format("loader: {} is {}; it must be at least {}",
                                  name, value, least));
  };
  require(config.batch_size >= 1, "batch_size", config.batch_size, 1);
  require(config.workers >= 0, "workers", config.workers, 0);
  require(config.prefetch_batches >= 1, "prefetch_batches",
          config.prefetch_batches, 1);
}

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

}  // namespace

Epoch::Epoch(std::unique_ptr<BatchStream> stream)
    : stream_(std::move(stream)) {}
Epoch::~Epoch() = default;
std::optional<Batch> Epoch::next() { return stream_->next(); }

Loader::Loader(std::shared_ptr<const Dataset> dataset, const World& world,
               LoaderConfig config)
    : Loader(std::move(dataset), Share{world.rank(), world.size()},
             world.device(), config) {
  status_ = world.status();
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, Share share,
               c10::Device device, LoaderConfig config)
    : dataset_(std::move(dataset)),
      device_(device),
      config_(config),
      sampler_(size_of(dataset_), share, sampler_config(config)) {
  check(config_);
}

int64_t Loader::batches_per_epoch() const {
  const int64_t samples = sampler_.size();
  if (config_.drop_last_batch) return samples / config_.batch_size;
  return (samples + config_.batch_size - 1) / config_.batch_size;
}

Epoch Loader::epoch(int64_t number, int64_t first_batch) const {
  if (first_batch < 0 || first_batch > batches_per_epoch()) {
    throw ConfigError(fmt::format(
        "cannot start at batch {}: an epoch has {} batches here (another batch "
        "size or number of processes than before?)",
        first_batch, batches_per_epoch()));
  }
  return Epoch(std::make_unique<BatchStream>(
      BatchPlan{.dataset = dataset_,
                .indices = sampler_.indices(number),
                .batch_size = config_.batch_size,
                .num_batches = batches_per_epoch(),
                .first_batch = first_batch,
                .epoch = number,
                .seed = config_.seed,
                .workers = config_.workers,
                .prefetch_batches = config_.prefetch_batches,
                .pin_memory = !device_.is_cpu()},
      device_, status_));
}

}  // namespace lockstep

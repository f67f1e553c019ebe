#include "lockstep/loader.h"

#include <fmt/format.h>

#include "lockstep/base/status.h"
#include "lockstep/data/batch_stream.h"
#include "lockstep/error.h"

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

Batches::Batches(std::unique_ptr<BatchStream> stream)
    : stream_(std::move(stream)) {}
Batches::~Batches() = default;
std::optional<Batch> Batches::next() { return stream_->next(); }

Loader::Loader(std::shared_ptr<const Dataset> dataset, const World& world,
               LoaderConfig config)
    : Loader(std::move(dataset), Shard{world.rank(), world.size()},
             world.device(), config) {
  status_ = std::make_shared<StatusWriter>(world.status());
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, Shard share,
               c10::Device device, LoaderConfig config)
    : dataset_(std::move(dataset)),
      device_(device),
      config_(config),
      sampler_(size_of(dataset_), share, sampler_config(config)),
      status_(std::make_shared<StatusWriter>()) {
  check(config_);
}

int64_t Loader::batches_per_epoch() const {
  const int64_t samples = sampler_.size();
  if (config_.drop_last_batch) return samples / config_.batch_size;
  return (samples + config_.batch_size - 1) / config_.batch_size;
}

namespace {

// Cuts a rank's samples of one epoch into batches.
class EpochRequests {
 public:
  EpochRequests(std::vector<int64_t> indices, int64_t batch_size,
                DataPosition first, int64_t num_batches)
      : indices_(std::move(indices)),
        batch_size_(batch_size),
        next_(first),
        num_batches_(num_batches) {}

  std::optional<BatchRequest> operator()() {
    if (next_.batch >= num_batches_) return std::nullopt;
    const auto total = static_cast<int64_t>(indices_.size());
    const int64_t begin = next_.batch * batch_size_;
    const int64_t end = std::min(begin + batch_size_, total);
    ++next_.batch;
    return BatchRequest{
        .indices = {indices_.begin() + begin, indices_.begin() + end},
        .epoch = next_.epoch,
        .next = next_};
  }

 private:
  std::vector<int64_t> indices_;
  int64_t batch_size_;
  DataPosition next_;
  int64_t num_batches_;
};

}  // namespace

Batches stream_batches(std::shared_ptr<const Dataset> dataset,
                       RequestSequence requests, const StreamConfig& config,
                       const StatusWriter& status) {
  return Batches(std::make_unique<BatchStream>(
      BatchPlan{.dataset = std::move(dataset),
                .requests = std::move(requests),
                .seed = config.seed,
                .workers = config.workers,
                .prefetch_batches = config.prefetch_batches,
                .pin_memory = !config.device.is_cpu()},
      config.device, status));
}

Batches stream_batches(std::shared_ptr<const Dataset> dataset,
                       RequestSequence requests, const StreamConfig& config) {
  return stream_batches(std::move(dataset), std::move(requests), config,
                        StatusWriter());
}

Batches Loader::epoch(int64_t number, int64_t first_batch) const {
  if (first_batch < 0 || first_batch > batches_per_epoch()) {
    throw ConfigError(fmt::format(
        "cannot start at batch {}: an epoch has {} batches here (another batch "
        "size or number of processes than before?)",
        first_batch, batches_per_epoch()));
  }
  return stream_batches(
      dataset_,
      EpochRequests(sampler_.indices(number), config_.batch_size,
                    {.epoch = number, .batch = first_batch},
                    batches_per_epoch()),
      {.seed = config_.seed,
       .workers = config_.workers,
       .prefetch_batches = config_.prefetch_batches,
       .device = device_},
      *status_);
}

}  // namespace lockstep

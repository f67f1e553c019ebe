// Loader: batches for one rank, prepared by threads ahead of the training.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/dataset.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/export.h"
#include "lockstep/world.h"

namespace lockstep {

struct LoaderConfig {
  int64_t batch_size = 1;        // Samples per batch on this rank.
  int workers = 2;               // Threads; 0 loads in the caller's thread.
  int64_t prefetch_batches = 2;  // Finished batches kept ahead, at least 1.
  uint64_t seed = 0;             // Order and augmentation; equal on every rank.
  bool shuffle = true;
  Uneven uneven = Uneven::kPad;
  bool drop_last_batch = false;  // Leave out a last batch that is not full.
};

class BatchStream;
class StatusWriter;

// The batches of an epoch or of a whole run, in order. Each batch is given
// once. Leaving a loop early is fine: its threads end with it.
class LOCKSTEP_EXPORT Batches {
 public:
  explicit Batches(std::unique_ptr<BatchStream> stream);
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // No value at the end. Rethrows what a data set threw, with the sample's
  // index; the call after that goes on with the next batch.
  std::optional<Batch> next();

  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = Batch;

    explicit Iterator(Batches& batches) : batches_(&batches) { ++*this; }
    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return &*batch_; }
    Iterator& operator++() {
      batch_ = batches_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    Batches* batches_;
    std::optional<Batch> batch_;
  };

  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::unique_ptr<BatchStream> stream_;
};

// Where batches go and how they are made ready.
struct StreamConfig {
  uint64_t seed = 0;             // Of the samples' random draws.
  int workers = 2;               // Threads; 0 loads in the caller's thread.
  int64_t prefetch_batches = 2;  // Finished batches kept ahead, at least 1.
  c10::Device device = c10::Device(c10::DeviceType::CPU);
};

// Batches as somebody else asks for them: what Loader is made of.
LOCKSTEP_EXPORT Batches stream_batches(std::shared_ptr<const Dataset> dataset,
                                       RequestSequence requests,
                                       const StreamConfig& config);
LOCKSTEP_EXPORT Batches stream_batches(std::shared_ptr<const Dataset> dataset,
                                       RequestSequence requests,
                                       const StreamConfig& config,
                                       const StatusWriter& status);

// Thread safety: one thread at a time. The data set is shared by all threads,
// not copied.
class LOCKSTEP_EXPORT Loader {
 public:
  // Throws ConfigError for a bad config or an empty data set.
  Loader(std::shared_ptr<const Dataset> dataset, const World& world,
         LoaderConfig config);
  // Without a world: share and device by hand.
  Loader(std::shared_ptr<const Dataset> dataset, Shard share,
         c10::Device device, LoaderConfig config);

  // From batch `first_batch` on: continues exactly where a run stopped.
  Batches epoch(int64_t number, int64_t first_batch = 0) const;
  // From Batch::next of the last batch used; at the end of an epoch, an empty
  // one.
  Batches resume(DataPosition position) const {
    return epoch(position.epoch, position.batch);
  }

  int64_t batches_per_epoch() const;
  const DistributedSampler& sampler() const { return sampler_; }

 private:
  std::shared_ptr<const Dataset> dataset_;
  c10::Device device_;
  LoaderConfig config_;
  DistributedSampler sampler_;
  std::shared_ptr<const StatusWriter> status_;
};

}  // namespace lockstep

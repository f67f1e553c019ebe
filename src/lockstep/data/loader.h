// Loader: batches for one rank, prepared by threads ahead of the training.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/comm/world.h"
#include "lockstep/data/batch.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/sampler.h"

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

// The batches of one epoch, in order. Each batch is given once. Leaving a loop
// early is fine: its threads end with it.
class Epoch {
 public:
  explicit Epoch(std::unique_ptr<BatchStream> stream);
  ~Epoch();
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  // No value at the end. Rethrows what a data set threw, with the sample's
  // index; the call after that goes on with the next batch.
  std::optional<Batch> next();

  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = Batch;

    explicit Iterator(Epoch& epoch) : epoch_(&epoch) { ++*this; }
    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return &*batch_; }
    Iterator& operator++() {
      batch_ = epoch_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    Epoch* epoch_;
    std::optional<Batch> batch_;
  };

  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::unique_ptr<BatchStream> stream_;
};

// Thread safety: one thread at a time. The data set is shared by all threads,
// not copied.
class Loader {
 public:
  // Throws ConfigError for a bad config or an empty data set.
  Loader(std::shared_ptr<const Dataset> dataset, const World& world,
         LoaderConfig config);
  // Without a world: share and device by hand.
  Loader(std::shared_ptr<const Dataset> dataset, Share share,
         c10::Device device, LoaderConfig config);

  // From batch `first_batch` on: continues exactly where a run stopped.
  Epoch epoch(int64_t number, int64_t first_batch = 0) const;
  // From Batch::next of the last batch used; at the end of an epoch, an empty
  // one.
  Epoch resume(DataPosition position) const {
    return epoch(position.epoch, position.batch);
  }

  int64_t batches_per_epoch() const;
  const DistributedSampler& sampler() const { return sampler_; }

 private:
  std::shared_ptr<const Dataset> dataset_;
  c10::Device device_;
  LoaderConfig config_;
  DistributedSampler sampler_;
  StatusWriter status_;
};

}  // namespace lockstep

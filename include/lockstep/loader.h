// Loader: batches for one rank, prefetched by threads.
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

namespace lockstep::base {
class StatusWriter;
}  // namespace lockstep::base

namespace lockstep::data {
class BatchStream;
}  // namespace lockstep::data

namespace lockstep {

struct LoaderConfig {
  int64_t batch_size = 1;        // Samples per batch on this rank.
  int workers = 2;               // Threads; 0 loads in the caller's thread.
  int64_t prefetch_batches = 2;  // Finished batches kept ahead, at least 1.
  uint64_t seed = 0;             // Order and augmentation; equal on every rank.
  bool shuffle = true;
  Uneven uneven = Uneven::kPad;
  bool drop_last_batch = false;  // Drop the last batch if it is not full.
};

// The batches of an epoch or of a whole training, in order, each once. A loop
// may be left early: the destructor ends the threads.
class LOCKSTEP_EXPORT Batches {
 public:
  explicit Batches(std::unique_ptr<data::BatchStream> stream);
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // No value at the end. Rethrows errors of the data set, with the sample's
  // index; the following call continues with the next batch.
  std::optional<Batch> next();

  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;  // NOLINT: the standard's
    using difference_type = std::ptrdiff_t;            // NOLINT
    using value_type = Batch;                          // NOLINT

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
  std::unique_ptr<data::BatchStream> stream_;
};

// Thread safety: one thread at a time. The data set is shared by all threads,
// not copied.
class LOCKSTEP_EXPORT Loader {
 public:
  // Throws ConfigError for a bad config or an empty data set.
  Loader(std::shared_ptr<const Dataset> dataset, const World& world,
         LoaderConfig config);
  // Without a world: explicit shard and device.
  Loader(std::shared_ptr<const Dataset> dataset, Shard shard,
         c10::Device device, LoaderConfig config);

  Batches epoch(int64_t number) const { return resume({.epoch = number}); }
  // The rest of an epoch, from Batch::next of the last batch used; empty at the
  // end of the epoch.
  Batches resume(DataPosition position) const;

  int64_t batches_per_epoch() const;
  const DistributedSampler& sampler() const { return sampler_; }

 private:
  std::shared_ptr<const Dataset> dataset_;
  c10::Device device_;
  LoaderConfig config_;
  DistributedSampler sampler_;
  std::shared_ptr<const base::StatusWriter> status_;
};

}  // namespace lockstep

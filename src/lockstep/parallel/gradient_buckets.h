// Gradients that are exchanged in buckets of shared memory, of which each rank
// needs its share alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/parallel/update_shares.h"
#include "lockstep/world.h"

namespace lockstep::parallel {

// Finds the Reducer's buckets by where the gradients of a step lie, and lets
// the next exchange sum in each rank's copy of a bucket no more than its share.
// Buckets that are not known yet are exchanged as a whole.
class GradientBuckets {
 public:
  GradientBuckets(const World& world, std::vector<at::Tensor> parameters);
  // Sums are whole again.
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  // The elements of each parameter that the ranks update.
  const std::vector<ElementEdges>& edges() const { return edges_; }

  // When the gradients of a step have been exchanged, by all ranks.
  void compare_places();
  // Copies the shares of the other ranks, so that this rank has the whole
  // gradient. They must not have changed theirs.
  void complete(size_t parameter) const;
  // At the end of a step, by all ranks: adopts buckets that have moved. True
  // when edges() changed.
  bool follow();

 private:
  struct Bucket {
    // In the list of parameters, in the order in which their gradients lie.
    std::vector<size_t> members = {};
    // Where the bucket begins in the heap of each rank.
    std::vector<int64_t> offsets = {};
    // All ranks have their gradients of this step there.
    bool is_in_place = true;
  };
  // Where a parameter's gradient lies.
  struct Place {
    size_t bucket = 0;
    size_t offset = 0;  // From the bucket's begin.
  };

  std::vector<Bucket> find() const;
  bool is_known(const Bucket& bucket) const;
  bool is_in_place(const Bucket& bucket) const;
  bool all_have(const std::vector<Bucket>& buckets) const;
  void exchange_offsets(std::vector<Bucket>& buckets) const;
  void share_evenly();
  void split_sums() const;
  void unite_sums() const;

  World world_;
  std::shared_ptr<comm::SharedArena> arena_;
  std::vector<at::Tensor> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<std::optional<Place>> places_;  // One per parameter.
  std::vector<ElementEdges> edges_;
  bool have_moved_ = false;
};

}  // namespace lockstep::parallel

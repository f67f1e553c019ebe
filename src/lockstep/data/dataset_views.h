// Views of other data sets.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lockstep/dataset.h"

namespace lockstep::data {

// Some samples of another one.
class Subset final : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> whole, std::vector<int64_t> indices);

  int64_t size() const override {
    return static_cast<int64_t>(indices_.size());
  }
  Sample get(int64_t index, uint64_t seed) const override;
  Sample collate(std::vector<Sample> samples) const override;
  std::vector<int64_t> lengths() const override;

 private:
  std::shared_ptr<const Dataset> whole_;
  std::vector<int64_t> indices_;
};

// Mirrors the first tensor of every second sample, left to right.
class RandomFlip final : public Dataset {
 public:
  explicit RandomFlip(std::shared_ptr<const Dataset> images);

  int64_t size() const override { return images_->size(); }
  Sample get(int64_t index, uint64_t seed) const override;
  Sample collate(std::vector<Sample> samples) const override {
    return images_->collate(std::move(samples));
  }

 private:
  std::shared_ptr<const Dataset> images_;
};

}  // namespace lockstep::data

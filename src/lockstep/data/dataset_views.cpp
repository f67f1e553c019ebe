#include "lockstep/data/dataset_views.h"

#include <ATen/ATen.h>

#include "lockstep/random.h"

namespace lockstep::data {
namespace {

// Stream of RandomStream; the wrapped data set uses the others.
constexpr uint64_t kFlipStream = 1'000'000;

}  // namespace

Subset::Subset(std::shared_ptr<const Dataset> whole,
               std::vector<int64_t> indices)
    : whole_(std::move(whole)), indices_(std::move(indices)) {}

Sample Subset::get(int64_t index, uint64_t seed) const {
  return whole_->get(indices_.at(static_cast<size_t>(index)), seed);
}

Sample Subset::collate(std::vector<Sample> samples) const {
  return whole_->collate(std::move(samples));
}

std::vector<int64_t> Subset::lengths() const {
  const std::vector<int64_t> all = whole_->lengths();
  std::vector<int64_t> own;
  if (all.empty()) return own;
  for (const int64_t index : indices_) {
    own.push_back(all.at(static_cast<size_t>(index)));
  }
  return own;
}

RandomFlip::RandomFlip(std::shared_ptr<const Dataset> images)
    : images_(std::move(images)) {}

Sample RandomFlip::get(int64_t index, uint64_t seed) const {
  Sample sample = images_->get(index, seed);
  if (RandomStream(seed, kFlipStream).chance(0.5)) {
    sample.at(0) = sample.at(0).flip(-1);
  }
  return sample;
}

}  // namespace lockstep::data

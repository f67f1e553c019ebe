#include "lockstep/datasets/episodes/frame_set.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/workers.h"
#include "lockstep/data/image_ops.h"
#include "lockstep/error.h"
#include "lockstep/formats/sha256.h"

namespace lockstep::episodes {
namespace {

// Rows [T, ...] of unequal length as one tensor, and where rows are.
struct Padded {
  at::Tensor rows = {};
  at::Tensor mask = {};
};

Padded pad_rows(const std::vector<Sample>& samples, size_t part,
                const at::Scalar& padding) {
  int64_t longest = 1;
  for (const Sample& sample : samples) {
    longest = std::max(longest, sample[part].size(0));
  }
  const at::Tensor& first = samples.front()[part];
  std::vector<int64_t> shape = first.sizes().vec();
  shape[0] = longest;
  shape.insert(shape.begin(), std::ssize(samples));
  Padded padded{.rows = at::full(shape, padding, first.options()),
                .mask = at::zeros({shape[0], longest}, at::kBool)};
  for (int64_t i = 0; i < shape[0]; ++i) {
    const at::Tensor& rows = samples[static_cast<size_t>(i)][part];
    padded.rows[i].narrow(0, 0, rows.size(0)).copy_(rows);
    padded.mask[i].narrow(0, 0, rows.size(0)).fill_(true);
  }
  return padded;
}

at::Tensor stacked(const std::vector<Sample>& samples, size_t part) {
  std::vector<at::Tensor> parts;
  for (const Sample& sample : samples) parts.push_back(sample[part]);
  return at::stack(parts);
}

at::Tensor or_nothing(const at::Tensor& tensor) {
  return tensor.defined() ? tensor : at::empty({0});
}

}  // namespace

FrameSet::FrameSet(const FrameSetConfig& config)
    : config_(config), first_frames_{0} {
  for (int64_t i = 0; i < config.source->num_episodes(); ++i) {
    first_frames_.push_back(first_frames_.back() +
                            config.source->num_frames(i));
  }
}

FrameSet::Place FrameSet::place_of(int64_t index) const {
  const auto behind = std::ranges::upper_bound(first_frames_, index);
  const int64_t episode = behind - first_frames_.begin() - 1;
  return {.episode = episode, .frame = index - *std::prev(behind)};
}

at::Tensor FrameSet::action(const Place& place) const {
  const formats::Action values =
      config_.source->action(place.episode, place.frame);
  return at::tensor(at::ArrayRef<float>(values));
}

at::Tensor FrameSet::images(int64_t episode, int64_t frame) const {
  const FrameSource& source = *config_.source;
  std::vector<at::Tensor> views = {
      data::to_tensor(source.image(episode, frame, Camera::kWorkspace))};
  if (config_.use_wrist_camera) {
    views.push_back(
        data::to_tensor(source.image(episode, frame, Camera::kWrist)));
  }
  return at::stack(views);
}

Sample ImageFrames::get(int64_t index, uint64_t /*seed*/) const {
  const Place place = place_of(index);
  const auto ids =
      config_.encoders->tokenize(config_.source->sentence(place.episode));
  return {images(place.episode, place.frame), at::tensor(ids, at::kLong),
          action(place)};
}

Sample ImageFrames::collate(std::vector<Sample> samples) const {
  const Padded ids = pad_rows(samples, 1, config_.encoders->padding());
  return {stacked(samples, 0), ids.rows, ids.mask, stacked(samples, 2)};
}

CachedFrames::CachedFrames(const FrameSetConfig& config) : FrameSet(config) {
  const int64_t count = config.source->num_episodes();
  fingerprints_.resize(static_cast<size_t>(count));
  base::run_workers(count, 0, [&](int64_t episode) {
    fingerprints_[static_cast<size_t>(episode)] = formats::sha256_of(
        fmt::format("{} {}", config_.source->fingerprint(episode),
                    config_.use_wrist_camera));
  });
}

void CachedFrames::use(std::shared_ptr<const FeatureCache> cache) {
  cache_ = std::move(cache);
}

const std::string& CachedFrames::fingerprint(int64_t episode) const {
  return fingerprints_[static_cast<size_t>(episode)];
}

Sample CachedFrames::get(int64_t index, uint64_t /*seed*/) const {
  LOCKSTEP_CHECK(cache_ != nullptr, "the cache of features is not open");
  const Place place = place_of(index);
  const atlas::ViewFeatures views =
      cache_->frame(fingerprint(place.episode), place.frame);
  return {views.tokens, or_nothing(views.pose), or_nothing(views.points),
          cache_->sentence(config_.source->sentence(place.episode)),
          action(place)};
}

Sample CachedFrames::collate(std::vector<Sample> samples) const {
  const Padded language = pad_rows(samples, kLanguage, 0);
  return {stacked(samples, kTokens),
          stacked(samples, kPose),
          stacked(samples, kPoints),
          language.rows,
          language.mask,
          stacked(samples, kLanguage + 1)};
}

}  // namespace lockstep::episodes

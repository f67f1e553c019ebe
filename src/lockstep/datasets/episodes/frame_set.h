// Every frame of every episode as a sample: images, instruction, and the action
// that follows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/dataset.h"
#include "lockstep/datasets/episodes/feature_cache.h"
#include "lockstep/datasets/episodes/frame_source.h"
#include "lockstep/models/atlas/encoders.h"

namespace lockstep::episodes {

// Common to both kinds of frame sets.
struct FrameSetConfig {
  std::shared_ptr<const FrameSource> source = {};
  std::shared_ptr<const atlas::Encoders> encoders = {};  // For tokenize().
  bool use_wrist_camera = true;
};

// A batch after collate(), by its parts.
enum ImageParts : size_t { kImages, kIds, kIdMask, kImageActions };
enum FeatureParts : size_t {
  kTokens,
  kPose,
  kPoints,
  kLanguage,
  kLanguageMask,
  kFeatureActions,
};
constexpr size_t kNumFeatureParts = 6;

class FrameSet : public Dataset {
 public:
  explicit FrameSet(const FrameSetConfig& config);

  int64_t size() const override { return first_frames_.back(); }
  const FrameSource& source() const { return *config_.source; }

  // uint8 [S, 3, H, W]
  at::Tensor images(int64_t episode, int64_t frame) const;

 protected:
  struct Place {
    int64_t episode = 0;
    int64_t frame = 0;
  };
  Place place_of(int64_t index) const;
  at::Tensor action(const Place& place) const;

  FrameSetConfig config_;
  std::vector<int64_t> first_frames_;  // Per episode, and one past the last.
};

// Images and tokens, for encoders that run in every step. A batch: kImages
// uint8 [B, S, 3, H, W], kIds int64 [B, T], kIdMask bool [B, T], kImageActions
// float [B, 7].
class ImageFrames final : public FrameSet {
 public:
  using FrameSet::FrameSet;

  Sample get(int64_t index, uint64_t seed) const override;
  Sample collate(std::vector<Sample> samples) const override;
};

// Features of a cache, which is opened before the first sample is taken. A
// batch: those of ViewFeatures (without elements where the model takes none),
// kLanguage [B, T, size], kLanguageMask bool [B, T], kFeatureActions.
class CachedFrames final : public FrameSet {
 public:
  explicit CachedFrames(const FrameSetConfig& config);

  void use(std::shared_ptr<const FeatureCache> cache);
  const std::string& fingerprint(int64_t episode) const;

  Sample get(int64_t index, uint64_t seed) const override;
  Sample collate(std::vector<Sample> samples) const override;

 private:
  std::shared_ptr<const FeatureCache> cache_;
  std::vector<std::string> fingerprints_;
};

}  // namespace lockstep::episodes

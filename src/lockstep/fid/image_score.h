// How good generated images are: the Frechet distance between their features
// and those of real ones, measured by all ranks together.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/engine/evaluation.h"
#include "lockstep/engine/learner.h"
#include "lockstep/image_scoring.h"
#include "lockstep/train_config.h"
#include "lockstep/world.h"

namespace lockstep::fid {

// What to say at the start of a run that scores; empty for an FID.
std::string score_note(const ScoreConfig& score);

class FeatureNet;
struct FeatureStatistics;

struct ImageScoreConfig {
  ScoreConfig score = {};
  std::shared_ptr<const Dataset> reference = {};
  // Statistics of the reference are kept here; empty: nowhere.
  std::filesystem::path folder = {};
  int64_t num_images = 2;  // At least 2.
  // Reference images to use; unset: all.
  std::optional<int64_t> max_reference = {};
  int64_t batch_size = 1;
  int workers = 0;
  uint64_t seed = 0;
};

class ImageScore {
 public:
  // Throws ConfigError or FormatError for files that are of no use.
  ImageScore(const World& world, ImageScoreConfig config);
  ~ImageScore();
  ImageScore(const ImageScore&) = delete;
  ImageScore& operator=(const ImageScore&) = delete;

  // "fid", or "fd_builtin" without Inception's weights.
  std::string name() const;

  // Scores images that the weights make, or `average` in their place; equal on
  // all ranks. No value when `go_on` ended it. A collective.
  std::optional<double> measure(ImageScoring& scoring, engine::Learner& learner,
                                const Ema* average, const engine::GoOn& go_on);

 private:
  bool find_reference(const engine::GoOn& go_on);
  bool load_reference();
  void keep_reference() const;
  std::string fingerprint() const;
  std::filesystem::path cache() const;

  World world_;
  ImageScoreConfig config_;
  std::unique_ptr<FeatureNet> net_;
  bool has_reference_ = false;
  // On rank 0.
  std::unique_ptr<FeatureStatistics> reference_;
};

}  // namespace lockstep::fid

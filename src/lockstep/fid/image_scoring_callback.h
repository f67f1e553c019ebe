// Scores generated images while training.
#pragma once

#include <memory>
#include <string>

#include "lockstep/engine/callback.h"
#include "lockstep/fid/image_score.h"

namespace lockstep::fid {

struct ImageScoringConfig {
  ImageScoreConfig score = {};
  bool is_dry_run = false;  // Few images; nothing is recorded or kept.
};

class ImageScoringCallback final : public engine::Callback {
 public:
  // `config.score.num_images` is the task's. Throws ConfigError, IoError or
  // FormatError for files that cannot be used. A collective.
  ImageScoringCallback(ImageScoring& scoring, const World& world,
                       ImageScoringConfig config);

  // The metric, "fid" or "fd_builtin"; empty when no score will be due.
  std::string metric() const { return score_ ? score_->name() : ""; }

  void after_step(engine::TrainLoop& loop, const Step& step) override;
  bool due(const engine::TrainLoop& loop) const override;
  bool run(engine::TrainLoop& loop) override;

 private:
  void prepare(const World& world);

  ImageScoring& scoring_;
  ImageScoringConfig config_;
  std::unique_ptr<ImageScore> score_;
};

}  // namespace lockstep::fid

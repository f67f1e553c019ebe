#include "lockstep/fid/image_scoring_callback.h"

#include <fmt/format.h>

#include "lockstep/engine/loop.h"

namespace lockstep::fid {

ImageScoringCallback::ImageScoringCallback(ImageScoring& scoring,
                                           const World& world,
                                           ImageScoringConfig config)
    : scoring_(scoring), config_(std::move(config)) {
  config_.score.num_images = scoring.num_images();
  if (config_.score.score.every) prepare(world);
}

void ImageScoringCallback::prepare(const World& world) {
  ImageScoreConfig score = config_.score;
  if (config_.is_dry_run) {
    score.num_images = 2 * world.size();
    score.max_reference = score.num_images;
    score.folder.clear();
  }
  score_ = std::make_unique<ImageScore>(world, std::move(score));
}

// Not at the end of every training: thousands of images take long.
void ImageScoringCallback::after_step(engine::TrainLoop& loop,
                                      const Step& /*step*/) {
  engine::TrainState& state = loop.state();
  const auto every = config_.score.score.every;
  state.due.scoring = every && state.step % *every == 0;
}

bool ImageScoringCallback::due(const engine::TrainLoop& loop) const {
  return loop.state().due.scoring;
}

// With the first moving average where there is one, as samples are made.
bool ImageScoringCallback::run(engine::TrainLoop& loop) {
  // Left due by a training that had scores, while this one has none.
  if (!score_) prepare(loop.world());
  engine::TrainState& state = loop.state();
  const auto& averages = loop.learner().averages();
  const auto value = score_->measure(
      scoring_, loop.learner(), averages.empty() ? nullptr : averages.data(),
      loop.go_on("score", base::Activity::kScoring));
  if (!value) return false;
  state.due.scoring = false;
  if (config_.is_dry_run) return true;
  loop.console().info(fmt::format(
      "{} at step {}: {:.4f} ({} images{})", score_->name(), state.step, *value,
      config_.score.num_images, averages.empty() ? "" : ", moving average"));
  loop.record({{score_->name(), *value}});
  return true;
}

}  // namespace lockstep::fid

#include "lockstep/cli/profile_callback.h"

#include <utility>

#include "lockstep/engine/loop.h"

namespace lockstep::cli {

ProfileCallback::ProfileCallback(const World& world,
                                 std::optional<ProfilerConfig> config) {
  if (config) profiler_.emplace(world, *std::move(config));
}

void ProfileCallback::after_step(engine::TrainLoop& loop,
                                 const Step& /*step*/) {
  if (!profiler_ || is_shown_) return;
  profiler_->step();
  if (profiler_->is_done()) show(loop);
}

void ProfileCallback::finish(engine::TrainLoop& loop) {
  if (!profiler_ || is_shown_) return;
  profiler_->finish();
  if (profiler_->is_done()) {
    show(loop);
  } else if (loop.world().is_main()) {
    loop.console().warn(
        "--profile: the training ended within the warm-up of 10 steps, so "
        "nothing was recorded; a larger --n_steps or --epochs helps");
  }
}

void ProfileCallback::show(engine::TrainLoop& loop) {
  is_shown_ = true;
  if (loop.world().is_main()) loop.console().info(profiler_->table());
}

}  // namespace lockstep::cli

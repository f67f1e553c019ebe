// --profile N: records steps of a training.
#pragma once

#include <optional>

#include "lockstep/engine/callback.h"
#include "lockstep/profiler.h"

namespace lockstep::cli {

// The table goes to the console when the recording has ended.
class ProfileCallback final : public engine::Callback {
 public:
  // `config`: no value records nothing.
  ProfileCallback(const World& world, std::optional<ProfilerConfig> config);

  void after_step(engine::TrainLoop& loop, const Step& step) override;
  // For a run that was too short, or stopped.
  void finish(engine::TrainLoop& loop) override;

 private:
  void show(engine::TrainLoop& loop);

  std::optional<Profiler> profiler_;
  bool is_shown_ = false;
};

}  // namespace lockstep::cli

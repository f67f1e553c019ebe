#include "lockstep/cli/setup_log.h"

#include <fmt/format.h>

#include "lockstep/cli/startup_text.h"
#include "lockstep/engine/common_settings.h"
#include "lockstep/fid/image_score.h"
#include "lockstep/image_scoring.h"

namespace lockstep::cli {
namespace {

// "dit: 32477221 parameters to train; DiT on images of 10 classes"
std::string model_text(const Session& session, engine::Learner& learner) {
  int64_t count = 0;
  for (const auto& parameter : learner.model().parameters()) {
    if (parameter.requires_grad()) count += parameter.numel();
  }
  const std::string& subject = session.info().subject;
  return fmt::format("{}: {} parameters to train{}{}", session.recipe(), count,
                     subject.empty() ? "" : "; ", subject);
}

}  // namespace

void log_setup(Session& session, const TrainConfig& config,
               const StepLoader& loader, const LearningRatePlan& plan,
               engine::Learner& learner) {
  const World& world = session.world();
  const engine::BatchSize& batch = session.batch();
  track::Console& console = session.console();
  console.info(setup_text(world));
  const std::string on_cpu = cpu_text(world.device(), config.device,
                                      session.recipe(), session.environment());
  if (!on_cpu.empty()) console.info(on_cpu);
  console.info(engine::batch_size_text(batch));
  console.info(lr_text(session, config, plan));
  const int64_t samples = loader.dataset().size();
  console.info(fmt::format(
      "{} training samples, {} steps per epoch, {} warm-up steps, precision {}",
      samples, loader.steps_per_epoch(), plan.schedule.warmup_updates,
      learner.precision().name));
  console.info(model_text(session, learner));
  if (plan.schedule.warmup_updates >= plan.total_steps &&
      plan.schedule.warmup_updates > 0) {
    console.info(fmt::format(
        "note: the warm-up of {} steps is not shorter than the run of {}: the "
        "learning rate stays below its value; a smaller {} shortens it",
        plan.schedule.warmup_updates, plan.total_steps,
        engine::warmup_flag(config.optimization)));
  }
  if (batch.per_process * world.size() > samples) {
    console.info(fmt::format(
        "note: a batch of {} per process is larger than the share of a process "
        "({} of {} samples): every step takes the whole data set",
        batch.per_process, samples / world.size(), samples));
  }
  const std::string note = fid::score_note(config.score);
  if (config.score.every && *config.score.every <= plan.total_steps &&
      !note.empty() && ability<ImageScoring>(session.task()) != nullptr) {
    console.info(note);
  }
}

}  // namespace lockstep::cli

#include "lockstep/run/saving_callback.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/status.h"
#include "lockstep/engine/loop.h"

namespace lockstep::run {
namespace {

// The end of training saves everything, but a score before it takes long.
bool saves_checkpoint(const engine::TrainLoop& loop) {
  const engine::DueWork& due = loop.state().due;
  return due.saving || (loop.is_finished() && due.scoring);
}

}  // namespace

SavingCallback::SavingCallback(SavingConfig config, Checkpoints& checkpoints,
                               StopSignals& signals)
    : config_(std::move(config)),
      checkpoints_(checkpoints),
      signals_(signals) {}

void SavingCallback::begin(engine::TrainLoop& loop) {
  agreed_stop_ = std::make_unique<AgreedStop>(loop.world(), signals_);
  const engine::TrainState& state = loop.state();
  first_step_ = config_.first_step.value_or(state.step);
  // It may have been lost with the rank that would have saved it.
  is_new_best_ =
      config_.is_recovered && state.best.value && state.best.step == state.step;
}

void SavingCallback::after_step(engine::TrainLoop& loop, const Step& step) {
  engine::TrainState& state = loop.state();
  const engine::Interval named{.epochs = config_.every_named_epochs};
  state.due.saving = (config_.every.ends_with(step, state.step) ||
                      named.ends_with(step, state.step)) &&
                     !loop.is_finished();
}

bool SavingCallback::due(const engine::TrainLoop& loop) const {
  return saves_checkpoint(loop) || (is_new_best_ && !loop.is_finished());
}

bool SavingCallback::run(engine::TrainLoop& loop) {
  const bool as_checkpoint = saves_checkpoint(loop);
  loop.state().due.saving = false;
  save(loop, {.as_checkpoint = as_checkpoint});
  return true;
}

void SavingCallback::observe(engine::TrainLoop& loop,
                             const engine::Observation& observation) {
  engine::TrainState& state = loop.state();
  // If the best model was not written, the previous one remains the best.
  if (checkpoints_.has_lost_best()) state.best = best_before_;
  const double sign = observation.better == Better::kLower ? 1 : -1;
  const bool is_better =
      std::isfinite(observation.value) &&
      (!state.best.value || sign * (observation.value - *state.best.value) < 0);
  if (!is_better) return;
  best_before_ =
      std::exchange(state.best, engine::Best{.value = observation.value,
                                             .step = state.step,
                                             .metrics = observation.metrics});
  is_new_best_ = true;
}

StopRequest SavingCallback::next_request(const engine::TrainLoop& loop) {
  const StopRequest request =
      agreed_stop_->next(pace_of(config_.status.activity_seconds()));
  const bool is_planned =
      config_.stop_after_steps && !loop.is_finished() &&
      loop.state().step - first_step_ >= *config_.stop_after_steps;
  return is_planned ? std::max(request, StopRequest::kPlanned) : request;
}

bool SavingCallback::poll(engine::TrainLoop& loop) {
  StopRequest request = next_request(loop);
  // A signal to all ranks may reach some of them one boundary later.
  const bool has_just_saved = std::exchange(has_just_saved_, false);
  if (request == StopRequest::kSave && has_just_saved) {
    request = StopRequest::kNone;
  }
  if (request == StopRequest::kNone) return true;
  has_just_saved_ = true;
  if (is_stop(request)) stopped_for_ = request;
  loop.console().info(
      fmt::format("{} at step {}: {}", request_text(request), loop.state().step,
                  is_stop(request) ? "saving, then ending" : "saving"));
  save(loop, {.is_last = is_stop(request)});
  return !is_stop(request);
}

void SavingCallback::finish(engine::TrainLoop& loop) {
  if (stopped_for_ == StopRequest::kNone) save(loop, {.is_last = true});
  config_.status.begin(base::Activity::kFinishing);
  agreed_stop_->finish();
}

void SavingCallback::save(engine::TrainLoop& loop, SaveRequest request) {
  request.as_best = std::exchange(is_new_best_, false);
  if (config_.is_dry_run) return;
  loop.world().status().set_phase(base::Phase::kSaving);
  config_.before_save(loop);
  config_.status.begin(base::Activity::kSaving);
  checkpoints_.save(loop.state(), request);
  loop.world().status().set_phase(base::Phase::kReady);
}

}  // namespace lockstep::run

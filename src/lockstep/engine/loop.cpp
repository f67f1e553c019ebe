#include "lockstep/engine/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/clock.h"
#include "lockstep/error.h"
#include "lockstep/run/run_folder.h"

namespace lockstep {
namespace {

// Without a validation set runs are judged by the training loss.
Better better_of(const LoopConfig& setup, const TaskInfo& facts) {
  return setup.data.validation == nullptr ? Better::kLower : facts.better;
}

PlateauConfig plateau_config(const LoopConfig& setup, const TaskInfo& facts) {
  if (setup.config.optimization.lr_schedule != "plateau") return {};
  // In parts of the base rate, so that a resumed run may have another one.
  const double base = setup.base_lr > 0 ? setup.base_lr : 1;
  return {.mode = better_of(setup, facts) == Better::kLower ? "min" : "max",
          .factor = setup.config.optimization.lr_gamma,
          .patience = setup.config.optimization.plateau_patience,
          .min_lr = setup.config.optimization.min_lr / base,
          .eps = 1e-8 / base};
}

// A dry run scores a few images, and keeps nothing of it.
ImageScoreConfig image_score_config(const LoopConfig& setup,
                                    const TaskInfo& facts, int world_size) {
  ImageScoreConfig config{.score = setup.config.score,
                          .reference = setup.data.reference,
                          .folder = setup.folder,
                          .num_images = facts.num_scored_items,
                          .batch_size = setup.batch.per_process,
                          .workers = static_cast<int>(setup.config.workers),
                          .seed = static_cast<uint64_t>(setup.config.seed)};
  if (setup.config.fast_dev_run) {
    config.num_images = 2 * world_size;
    config.max_reference = config.num_images;
    config.folder.clear();
  }
  return config;
}

}  // namespace

TrainLoop::TrainLoop(Recipe& recipe, Learner& learner, StepLoader loader,
                     const World& world, Console& console, LoopConfig config)
    : recipe_(recipe),
      learner_(learner),
      world_(world),
      console_(console),
      setup_(std::move(config)),
      facts_(recipe.facts()),
      loader_(std::move(loader)),
      plateau_(plateau_config(setup_, facts_)),
      timer_(world.device(), world.status()),
      status_(setup_.status) {
  if (setup_.config.score.every && facts_.num_scored_items > 0) {
    prepare_score();
  }
}

TrainLoop::~TrainLoop() = default;

StopRequest TrainLoop::run(RunState state, const LoopActions& actions,
                           StopSignals& signals) {
  state_ = std::move(state);
  actions_ = &actions;
  if (state_.plateau) plateau_.load(*state_.plateau);
  wish_ = std::make_unique<AgreedStop>(world_, signals);
  // In place: Batches do not move.
  batches_.reset(new Batches(loader_.batches(state_.position)));
  first_step_ = state_.step;
  epoch_ = state_.position.epoch;
  // With other settings than before a run that was stopped early may go on.
  const auto patience = setup_.config.early_stopping_patience;
  state_.stopped_early =
      patience && state_.validations_without_progress >= *patience;
  if (is_finished()) say_nothing_to_train();
  begin_ns_ = monotonic_ns();
  while (do_due_work() && !is_finished() && poll()) train_step();
  if (stopped_for_ == StopRequest::kNone) save({.is_last = true});
  status_.begin(Activity::kFinishing);
  wish_->finish();
  batches_.reset();
  console_.progress(progress_state());
  console_.finish_progress();
  show_times();
  return stopped_for_;
}

bool TrainLoop::is_finished() const {
  if (state_.stopped_early) return true;
  if (setup_.config.n_steps) return state_.step >= *setup_.config.n_steps;
  return state_.position.epoch >= setup_.config.epochs;
}

double TrainLoop::current_lr() const {
  return lr_at(setup_.schedule, setup_.base_lr, state_.step + 1) *
         plateau_.factor();
}

void TrainLoop::train_step() {
  const int64_t begin = monotonic_ns();
  world_.status().set_step(state_.step);
  status_.begin(Activity::kStep);
  timer_.begin_step();
  Step step;
  for (bool ends_step = false; !ends_step;) {
    const auto batch = batches_->next();
    LOCKSTEP_CHECK(batch.has_value(), "the loader ended before the run");
    timer_.data_end();
    learner_.forward(*batch);
    timer_.forward_end();
    learner_.backward();
    timer_.backward_end();
    step = batch->step;
    ends_step = batch->ends_step();
  }
  world_.status().set_phase(Phase::kUpdating);
  learner_.update(current_lr());
  timer_.end_step();
  samples_ += step.num_samples;
  epoch_ = step.begin.epoch;
  ++state_.step;
  status_.set_num_steps(state_.step);
  state_.position = step.next;
  busy_ns_ += monotonic_ns() - begin;

  note_due_work(step);
  const bool is_last = is_finished();
  if (state_.step % setup_.config.log_every == 0 || step.ends_epoch() ||
      is_last) {
    log();
  }
  if (step.ends_epoch()) finish_epoch(step.begin.epoch);
  console_.progress(progress_state());
}

void TrainLoop::note_due_work(const Step& step) {
  const TrainConfig& config = setup_.config;
  const auto due_epoch = [&](int64_t every_epochs) {
    return step.ends_epoch() && every_epochs > 0 &&
           (step.begin.epoch + 1) % every_epochs == 0;
  };
  const auto due = [&](std::optional<int64_t> every_steps,
                       int64_t every_epochs) {
    if (every_steps) return state_.step % *every_steps == 0;
    return due_epoch(every_epochs);
  };
  const bool is_last = is_finished();
  const bool validates = config.val_every || config.val_every_epochs > 0;
  state_.due.validation = setup_.data.validation != nullptr &&
                          (due(config.val_every, config.val_every_epochs) ||
                           (is_last && validates));
  state_.due.sampling = facts_.num_sample_items > 0 && config.sample_every &&
                        (state_.step % *config.sample_every == 0 || is_last);
  // Not at the end of any run: thousands of images take their time.
  state_.due.scoring = facts_.num_scored_items > 0 && config.score.every &&
                       state_.step % *config.score.every == 0;
  // Where ends of epochs have names of their own, both are kept.
  const bool has_epoch_files = !facts_.files.epoch_checkpoint.empty();
  state_.due.saving =
      (due(config.save_every, config.save_every_epochs) ||
       (has_epoch_files && due_epoch(config.save_every_epochs))) &&
      !is_last;
}

// False when a signal ended it; what was not done stays due.
bool TrainLoop::do_due_work() {
  if (state_.due.validation && !validate()) return false;
  state_.due.validation = false;
  if (state_.due.sampling && !sample()) return false;
  state_.due.sampling = false;
  // Before the score: it takes long, and nothing is lost when it fails. The end
  // of the run saves all.
  const bool saves = std::exchange(state_.due.saving, false) ||
                     (is_finished() && state_.due.scoring);
  if (saves || (is_new_best_ && !is_finished())) {
    save({.as_checkpoint = saves});
  }
  if (state_.due.scoring && !score()) return false;
  state_.due.scoring = false;
  return true;
}

// At every boundary, equally often on all ranks. False: stop here.
bool TrainLoop::poll() {
  StopRequest wish = wish_->next(pace_of(status_.activity_seconds()));
  // A signal to all ranks may reach some of them one boundary later.
  const bool has_just_saved = std::exchange(has_just_saved_, false);
  if (wish == StopRequest::kSave && has_just_saved) wish = StopRequest::kNone;
  if (wish == StopRequest::kNone) return true;
  has_just_saved_ = true;
  if (is_stop(wish)) stopped_for_ = wish;
  console_.info(fmt::format("{} at step {}: {}", signal_text(wish), state_.step,
                            is_stop(wish) ? "saving, then ending" : "saving"));
  save({.is_last = is_stop(wish)});
  return !is_stop(wish);
}

GoOn TrainLoop::go_on(const char* label, Activity activity) {
  return [this, label, activity](int64_t done, int64_t total) {
    console_.progress({.label = label, .step = done, .total_steps = total});
    if (!poll()) return false;
    status_.begin(activity);
    return true;
  };
}

bool TrainLoop::validate() {
  const auto metrics =
      evaluate(recipe_, learner_, setup_.data.validation, world_,
               {.batch_size = setup_.batch.per_process,
                .workers = static_cast<int>(setup_.config.workers),
                .seed = loader_.config().seed,
                .limit_batches = setup_.config.limit_val_batches},
               go_on("validate", Activity::kValidation));
  if (!metrics) return false;
  std::string text = fmt::format("validation at step {}:", state_.step);
  Metrics records;
  for (const auto& [name, value] : *metrics) {
    text += fmt::format(" {} {:.6g}", name, value);
    records.emplace_back("val/" + name, value);
  }
  console_.info(text);
  record(std::move(records));
  const double* loss = find_metric(*metrics, "loss");
  const double* metric = find_metric(*metrics, facts_.best_metric);
  LOCKSTEP_CHECK(metric != nullptr,
                 "evaluate() gives no " + facts_.best_metric);
  state_.val_losses.add(loss != nullptr ? *loss : *metric,
                        kept_losses(facts_.keys.val_losses));
  observe(*metric, *metrics);
  return true;
}

// The same number on every rank, so the same decisions.
void TrainLoop::observe(double metric, const Metrics& metrics) {
  // A best model that is on no disk is none: the one before counts.
  if (actions_->has_lost_best()) state_.best = best_before_;
  const double sign = better_of(setup_, facts_) == Better::kLower ? 1 : -1;
  const double delta = setup_.config.early_stopping_min_delta;
  const bool is_better =
      std::isfinite(metric) &&
      (!state_.best.value || sign * (metric - *state_.best.value) < 0);
  const bool is_progress =
      std::isfinite(metric) &&
      (!state_.progress || sign * (*state_.progress - metric) > delta);
  if (setup_.config.optimization.lr_schedule == "plateau") {
    const double before = plateau_.factor();
    plateau_.observe(metric);
    state_.plateau = plateau_.state();
    if (plateau_.factor() != before) {
      console_.info(fmt::format(
          "no progress in {} validations: learning rate {:.6g}",
          setup_.config.optimization.plateau_patience + 1, current_lr()));
    }
  }
  if (is_progress) state_.progress = metric;
  state_.validations_without_progress =
      is_progress ? 0 : state_.validations_without_progress + 1;
  if (is_better) {
    best_before_ = std::exchange(
        state_.best,
        Best{.value = metric, .step = state_.step, .metrics = metrics});
    is_new_best_ = true;
  }
  const auto patience = setup_.config.early_stopping_patience;
  if (patience && state_.validations_without_progress >= *patience) {
    state_.stopped_early = true;
    console_.info(fmt::format(
        "early stopping at step {}: {} validations without progress; the best "
        "{} is {:.6g} of step {}",
        state_.step, *patience,
        setup_.data.validation ? facts_.best_metric : "training loss",
        state_.best.value.value_or(NAN), state_.best.step));
  }
}

bool TrainLoop::sample() {
  if (!sample_with(std::nullopt)) return false;
  if (!facts_.samples_averages) return true;
  for (size_t i = 0; i < learner_.averages().size(); ++i) {
    if (!sample_with(static_cast<int64_t>(i))) return false;
  }
  return true;
}

bool TrainLoop::sample_with(std::optional<int64_t> average) {
  const auto items = sample_items(
      recipe_, learner_, world_,
      {.num_items =
           setup_.config.fast_dev_run
               ? std::min<int64_t>(facts_.num_sample_items, world_.size())
               : facts_.num_sample_items,
       .batch_size = setup_.batch.per_process,
       .seed = loader_.config().seed,
       .average = average
                      ? &learner_.averages().at(static_cast<size_t>(*average))
                      : nullptr},
      go_on("sample", Activity::kSampling));
  if (!items) return false;
  if (!world_.is_main() || setup_.config.fast_dev_run) return true;
  record_samples(render_items(recipe_, *items, average));
  return true;
}

void TrainLoop::prepare_score() {
  score_ = std::make_unique<ImageScore>(
      world_, image_score_config(setup_, facts_, world_.size()));
}

// With the first average where there is one: it is what samples are made with.
bool TrainLoop::score() {
  const bool is_dry = setup_.config.fast_dev_run;
  // Left due by a run that had scores, while this one has none.
  if (!score_) prepare_score();
  const auto& averages = learner_.averages();
  const auto value = score_->measure(
      recipe_, learner_, averages.empty() ? nullptr : averages.data(),
      go_on("score", Activity::kScoring));
  if (!value) return false;
  if (is_dry) return true;
  console_.info(fmt::format("{} at step {}: {:.4f} ({} images{})",
                            score_->name(), state_.step, *value,
                            facts_.num_scored_items,
                            averages.empty() ? "" : ", moving average"));
  record({{score_->name(), *value}});
  return true;
}

void TrainLoop::record_samples(const std::vector<OutputFile>& files) {
  Record record{.step = state_.step};
  for (const OutputFile& file : files) {
    record.files.push_back(
        {.name = file_name(file.name, state_.step, state_.position.epoch),
         .bytes = file.bytes});
    const std::filesystem::path name = file.name;
    if (name.extension() == ".png") {
      record.images.push_back({.title = file.title, .png = file.bytes});
    } else if (name.extension() == ".txt") {
      record.texts.push_back({.title = file.title, .text = file.bytes});
    }
  }
  actions_->record(std::move(record));
}

void TrainLoop::record(Metrics metrics) {
  actions_->record({.step = state_.step, .metrics = std::move(metrics)});
}

void TrainLoop::save(SaveRequest request) {
  request.as_best = std::exchange(is_new_best_, false);
  if (setup_.config.fast_dev_run) return;
  world_.status().set_phase(Phase::kSaving);
  status_.begin(Activity::kSaving);
  actions_->save(state_, request);
  world_.status().set_phase(Phase::kReady);
}

}  // namespace lockstep

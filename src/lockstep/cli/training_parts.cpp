#include "lockstep/cli/training_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/divide.h"
#include "lockstep/engine/common_settings.h"
#include "lockstep/error.h"
#include "lockstep/optim/lr_scaling.h"

namespace lockstep::cli {
namespace {

constexpr double kBlrBatch = 256;
constexpr const char* kPlateau = "plateau";

std::optional<int64_t> steps_per_epoch_limit(const TrainConfig& config,
                                             int64_t all_steps) {
  if (config.overfit_batches) return *config.overfit_batches;
  if (!config.limit_train_batches) return std::nullopt;
  const double limit = *config.limit_train_batches;
  if (limit >= 1) return static_cast<int64_t>(limit);
  return std::max<int64_t>(
      1, std::llround(limit * static_cast<double>(all_steps)));
}

ScheduleConfig schedule_of(const TrainConfig& config, const StepLoader& loader,
                           int64_t total_steps) {
  const OptimizationConfig& optimization = config.optimization;
  const int64_t per_epoch = loader.steps_per_epoch();
  ScheduleConfig schedule{
      .kind = optimization.lr_schedule == kPlateau ? "constant"
                                                   : optimization.lr_schedule,
      .warmup_updates = optimization.warmup_steps,
      .total_updates = total_steps,
      .min_lr = optimization.min_lr,
      .step_updates = optimization.lr_step_epochs * per_epoch,
      .gamma = optimization.lr_gamma};
  if (optimization.warmup_epochs > 0) {
    schedule.warmup_updates = std::llround(optimization.warmup_epochs *
                                           static_cast<double>(per_epoch));
  }
  // A training that ends during warm-up has no decay.
  schedule.total_updates =
      std::max(schedule.total_updates, schedule.warmup_updates + 1);
  check_schedule(schedule);
  return schedule;
}

double base_lr_of(const Session& session, const TrainConfig& config) {
  const OptimizationConfig& optimization = config.optimization;
  if (optimization.blr) {
    return *optimization.blr *
           static_cast<double>(session.batch().effective()) / kBlrBatch;
  }
  return optim::scaled_lr(optimization.lr,
                          optim::parse_lr_scaling(optimization.lr_scaling),
                          session.scaled_processes());
}

// `key`: the checkpoint key that lists the losses; empty if there is none.
engine::LossHistory::Keep kept_losses(const std::string& key) {
  return key.empty() ? engine::LossHistory::Keep::kLast
                     : engine::LossHistory::Keep::kAll;
}

engine::LoggingConfig logging_config(const Session& session,
                                     const Settings& settings,
                                     int64_t total_steps) {
  const TrainConfig& config = settings.common;
  return {.every = config.log_every,
          .total_steps = total_steps,
          .num_epochs = config.n_steps ? 0 : config.epochs,
          .flops_per_sample = session.info().flops_per_sample,
          .max_skipped_steps = config.optimization.max_skipped_steps,
          .warmup_flag = engine::warmup_flag(config.optimization),
          .keep_losses = kept_losses(settings.checkpoint.train_losses),
          .observes_loss = session.data().validation == nullptr};
}

engine::ValidationConfig validation_config(const Session& session,
                                           const Settings& settings) {
  const TrainConfig& config = settings.common;
  const TaskInfo& info = session.info();
  return {
      .data = session.data().validation,
      .every = {.steps = config.val_every, .epochs = config.val_every_epochs},
      .evaluation = {.batch_size = session.batch().per_process,
                     .workers = static_cast<int>(config.workers),
                     .seed = static_cast<uint64_t>(config.seed),
                     .limit_batches = config.limit_val_batches},
      .metric = info.best_metric,
      .better = info.better,
      .keep_losses = kept_losses(settings.checkpoint.val_losses)};
}

engine::SamplingCallbackConfig sampling_config(const Session& session,
                                               const TrainConfig& config) {
  return {.every = config.sample_every,
          .batch_size = session.batch().per_process,
          .seed = static_cast<uint64_t>(config.seed),
          .is_dry_run = config.fast_dev_run};
}

fid::ImageScoringConfig scoring_config(const Session& session,
                                       const TrainConfig& config) {
  return {.score = {.score = config.score,
                    .reference = session.reference(),
                    .folder = config.save_dir,
                    .batch_size = session.batch().per_process,
                    .workers = static_cast<int>(config.workers),
                    .seed = static_cast<uint64_t>(config.seed)},
          .is_dry_run = config.fast_dev_run};
}

std::optional<optim::PlateauConfig> plateau_config(const TrainConfig& config,
                                                   double base_lr) {
  const OptimizationConfig& optimization = config.optimization;
  if (optimization.lr_schedule != kPlateau) return std::nullopt;
  // Factors of the base rate, which may change on resume.
  const double base = base_lr > 0 ? base_lr : 1;
  return optim::PlateauConfig{.factor = optimization.lr_gamma,
                              .patience = optimization.plateau_patience,
                              .min_lr = optimization.min_lr / base,
                              .eps = 1e-8 / base};
}

}  // namespace

StepLoader make_step_loader(const Session& session, const TrainConfig& config) {
  const engine::BatchSize& batch = session.batch();
  const auto& data = session.data().train;
  if (data == nullptr) {
    throw ConfigError("the recipe " + session.recipe() +
                      " has no training data: data().train is null for "
                      "Purpose::kTrain");
  }
  return {data, session.world(),
          StepLoaderConfig{
              .global_batch_size = batch.effective(),
              .micro_batch_size = batch.per_process,
              .workers = static_cast<int>(config.workers),
              .prefetch_batches = 2 * std::max<int64_t>(1, batch.accumulation),
              .seed = static_cast<uint64_t>(config.seed),
              .drop_last = config.drop_last,
              .max_steps_per_epoch = steps_per_epoch_limit(
                  config, base::divide_up(data->size(), batch.effective())),
              .repeat_first_epoch = config.overfit_batches.has_value()}};
}

LearningRatePlan plan_learning_rate(const Session& session,
                                    const TrainConfig& config,
                                    const StepLoader& loader,
                                    const engine::TrainState& state) {
  LearningRatePlan plan{.base_lr = base_lr_of(session, config)};
  plan.total_steps = config.n_steps.value_or(
      state.step + loader.steps_until(state.position, config.epochs));
  plan.schedule = schedule_of(config, loader, plan.total_steps);
  return plan;
}

std::string lr_text(const Session& session, const TrainConfig& config,
                    const LearningRatePlan& plan) {
  const OptimizationConfig& optimization = config.optimization;
  if (optimization.blr) {
    return fmt::format("learning rate {:g} = {:g} x effective batch {} / {}",
                       plan.base_lr, *optimization.blr,
                       session.batch().effective(), kBlrBatch);
  }
  return optim::scaling_text(optimization.lr,
                             optim::parse_lr_scaling(optimization.lr_scaling),
                             session.scaled_processes());
}

run::SavingConfig saving_config(const Settings& settings,
                                const base::TrainingStatusWriter& status,
                                engine::ReplicaCheckCallback& replicas) {
  const TrainConfig& config = settings.common;
  const bool has_epoch_files = !settings.files.epoch_checkpoint.empty();
  return {
      .every = {.steps = config.save_every, .epochs = config.save_every_epochs},
      .every_named_epochs = has_epoch_files ? config.save_every_epochs : 0,
      .is_dry_run = config.fast_dev_run,
      .stop_after_steps = config.stop_after_steps,
      .before_save =
          [&replicas](engine::TrainLoop& loop) { replicas.check_new(loop); },
      .status = status};
}

TrainCallbacks::TrainCallbacks(const Session& session, const Settings& settings,
                               const LearningRatePlan& plan)
    : logging_(logging_config(session, settings, plan.total_steps)),
      validation_(session.task(), validation_config(session, settings)),
      early_stopping_({.patience = settings.common.early_stopping_patience,
                       .min_delta = settings.common.early_stopping_min_delta}),
      replicas_(settings.common.check_replicas_every) {
  const TrainConfig& config = settings.common;
  if (auto* sampling = ability<Sampling>(session.task())) {
    sampling_.emplace(*sampling, sampling_config(session, config));
  }
  if (auto* scoring = ability<ImageScoring>(session.task())) {
    scoring_.emplace(*scoring, session.world(),
                     scoring_config(session, config));
  }
  if (const auto plateau = plateau_config(config, plan.base_lr)) {
    plateau_.emplace(*plateau);
  }
}

std::vector<engine::Callback*> TrainCallbacks::with(
    run::SavingCallback& saving) {
  // What is saved or evaluated was compared before.
  std::vector<engine::Callback*> all = {&replicas_, &logging_, &validation_};
  if (sampling_) all.push_back(&*sampling_);
  all.push_back(&saving);
  if (scoring_) all.push_back(&*scoring_);
  if (plateau_) all.push_back(&*plateau_);
  all.push_back(&early_stopping_);
  return all;
}

}  // namespace lockstep::cli

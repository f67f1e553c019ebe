#include <fmt/format.h>

#include "lockstep/base/files.h"
#include "lockstep/base/status.h"
#include "lockstep/base/strings.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/prediction.h"
#include "lockstep/cli/profile_callback.h"
#include "lockstep/cli/run_files.h"
#include "lockstep/cli/session.h"
#include "lockstep/cli/setup_log.h"
#include "lockstep/cli/training_parts.h"
#include "lockstep/comm/explain.h"
#include "lockstep/config/render.h"
#include "lockstep/engine/loop.h"
#include "lockstep/error.h"
#include "lockstep/run/checkpoint_sections.h"
#include "lockstep/run/checkpoints.h"
#include "lockstep/run/init_weights.h"
#include "lockstep/run/recovery.h"
#include "lockstep/run/saving_callback.h"

namespace lockstep::cli {
namespace {

// The exit code, and the last line of the console.
struct Outcome {
  int exit_code = 0;
  track::Level level = track::Level::kInfo;
  std::string text = {};
};

Outcome stopped_outcome(run::StopRequest stopped_for, const std::string& lost,
                        const run::Checkpoints& checkpoints,
                        const TrainConfig& config) {
  const int code = run::exit_code_of(stopped_for);
  const std::string signal = run::request_text(stopped_for);
  if (!lost.empty() && !checkpoints.has_any()) {
    return {code, track::Level::kError,
            fmt::format("stopped by {}; the {} was not written and {} holds no "
                        "other: the run cannot be resumed",
                        signal, lost, config.save_dir)};
  }
  const std::string note =
      lost.empty()
          ? ""
          : fmt::format("the {} was not written, older ones are: ", lost);
  return {code, track::Level::kInfo,
          fmt::format("stopped by {}; {}resume with --resume latest "
                      "--save_dir {}",
                      signal, note, config.save_dir)};
}

Outcome outcome_of(run::StopRequest stopped_for, run::Checkpoints& checkpoints,
                   const TrainConfig& config) {
  const std::string lost = checkpoints.finish();
  // A signal's exit code says what ended the training.
  const bool has_own_code = run::exit_code_of(stopped_for) != 0;
  if (!lost.empty() && !has_own_code) {
    const std::string reason = checkpoints.last_error();
    throw IoError(fmt::format(
        "the training is done, but its {} could not be written, see the errors "
        "above{}{}",
        lost, reason.empty() ? "" : ": ", reason));
  }
  if (stopped_for != run::StopRequest::kNone) {
    return stopped_outcome(stopped_for, lost, checkpoints, config);
  }
  return {0, track::Level::kInfo,
          config.fast_dev_run
              ? "fast_dev_run: everything works; nothing was saved"
              : "done; everything is in " + config.save_dir};
}

// All work of this rank ends here: ranks that die later are not replaced.
Outcome finish(run::StopRequest stopped_for, run::Checkpoints& checkpoints,
               const TrainConfig& config, run::Recovery* recovery) {
  Outcome outcome = outcome_of(stopped_for, checkpoints, config);
  if (recovery != nullptr) recovery->end();
  return outcome;
}

// The last line is recorded, but printed when the records have ended: what they
// report comes before it.
int close_run(const Outcome& outcome, OpenRun& run, track::Console& console) {
  if (run.records) run.records->finish(outcome.exit_code, outcome.text);
  if (outcome.level == track::Level::kError) {
    console.error(outcome.text);
  } else {
    console.info(outcome.text);
  }
  return outcome.exit_code;
}

ProfileCallback profile_callback(const Session& session,
                                 const CommandLine& line) {
  std::optional<ProfilerConfig> config;
  if (line.profile()) {
    config.emplace();
    config->num_steps = *line.profile();
    config->folder = std::filesystem::path(line.config().save_dir) / "profile";
  }
  return {session.world(), std::move(config)};
}

run::StopRequest run_loop(Session& session, engine::TrainLoop& loop,
                          const engine::TrainState& state,
                          std::vector<engine::Callback*> callbacks,
                          run::SavingCallback& saving) {
  session.with_memory_report(
      [&] { return fmt::format("step {}", loop.state().step + 1); },
      [&] { loop.run(state, std::move(callbacks)); },
      [&] { return loop.micro_batch_size(); });
  return saving.stopped_for();
}

run::CheckpointsConfig checkpoints_config(const Session& session,
                                          const CommandLine& line,
                                          double base_lr) {
  const TrainConfig& config = line.config();
  return {.folder = config.save_dir,
          .recipe = session.recipe(),
          .names = line.settings().files,
          .layout = line.settings().checkpoint,
          .keep_last = config.keep_last,
          .global_batch = session.batch().effective(),
          .base_lr = base_lr,
          .seed = static_cast<uint64_t>(config.seed),
          .num_samples = session.data().train->size(),
          .config_yaml = config::to_yaml(line.options()),
          .settings = run::settings_tree(line.options()),
          .is_dry_run = config.fast_dev_run,
          .save_required = config.save_required,
          .waits_for_best = session.world().can_reform(),
          .status = base::TrainingStatusWriter::from_environment(
              session.environment()),
          .fence = run::RunFence::from_environment(config.save_dir,
                                                   session.environment())};
}

// Start of a training: from the memory of other ranks, a checkpoint, the
// weights of --init_from, or random weights.
struct Start {
  std::unique_ptr<engine::Learner> learner = {};
  engine::TrainState state = {};
  bool is_resumed = false;
  bool is_recovered = false;
  std::optional<int64_t> first_step = {};   // Where that is not state.step.
  std::optional<int64_t> micro_batch = {};  // Where that is not the batch's.
};

// `records` is null on ranks that do not write.
engine::LoopConfig loop_config(const TrainConfig& config,
                               const LearningRatePlan& plan, const Start& start,
                               const base::TrainingStatusWriter& status,
                               run::Recovery* recovery,
                               run::RunRecords* records) {
  engine::LoopConfig loop{
      .num_steps = config.n_steps,
      .num_epochs = config.epochs,
      .schedule = plan.schedule,
      .base_lr = plan.base_lr,
      .status = status,
      .cuda_graphs = {.enabled = config.cuda_graph},
      .recovery = recovery,
      .is_recovered = start.is_recovered,
      .on_out_of_memory = engine::parse_on_out_of_memory(config.on_oom)};
  if (records != nullptr) {
    loop.record = [records, recovery](track::Record record) {
      records->record(std::move(record));
      // The queue would die with this process.
      if (recovery != nullptr) records->wait();
    };
  }
  return loop;
}

Start recover_training(Session& session, const run::CheckpointsConfig& files,
                       run::Recovery& recovery) {
  const World& world = session.world();
  const std::vector<int> replaced = world.ranks_without_state();
  const run::RecoveredState recovered = recovery.recover();
  Start start{.learner = session.make_learner(recovered.layout),
              .state = recovered.state,
              .is_resumed = true,
              .is_recovered = true,
              .first_step = recovered.first_step,
              .micro_batch = recovered.micro_batch};
  run::restore(recovered, *start.learner, files, world);
  if (replaced.empty()) {
    session.console().info(fmt::format(
        "{} ranks go on with their state after step {}: nothing is repeated",
        world.size(), recovered.state.step));
    return start;
  }
  session.console().info(fmt::format(
      "rank(s) {} have been started and have the state of rank {} after step "
      "{}: the training goes on, nothing is repeated",
      base::list_of(replaced), recovered.source, recovered.state.step));
  return start;
}

Start start_training(Session& session, const TrainConfig& config,
                     const run::CheckpointsConfig& files,
                     run::Recovery* recovery) {
  const World& world = session.world();
  track::Console& console = session.console();
  if (recovery != nullptr && recovery->is_pending()) {
    return recover_training(session, files, *recovery);
  }
  Start start;
  std::optional<Tree> checkpoint;
  if (config.resume) {
    checkpoint = run::find_checkpoint(*config.resume, files, world, console);
  }
  start.is_resumed = checkpoint.has_value();
  start.learner = session.make_learner(
      checkpoint ? run::layout_of(*checkpoint, world) : std::nullopt);
  if (checkpoint) {
    start.state =
        run::restore(*checkpoint, *start.learner, files, world, console);
  } else if (config.init_from) {
    run::init_weights(config, files.layout, *start.learner, world, console);
  }
  return start;
}

// From now on the launcher waits for a checkpoint after Ctrl-C.
void announce_training(const run::CheckpointsConfig& files,
                       const Start& start) {
  if (files.is_dry_run) return;
  base::TrainingStatusWriter status = files.status;
  if (start.is_recovered) {
    status.go_on(start.state.step);
    return;
  }
  status.start(start.state.step, start.is_resumed
                                     ? std::optional(start.state.step)
                                     : std::nullopt);
}

void log_settings_source(const CommandLine& line, Session& session) {
  if (!line.settings_note().empty() && session.world().is_main()) {
    session.console().warn(line.settings_note());
  }
  for (const std::filesystem::path& path : line.shipped_files()) {
    session.console().info("--config: taken from " + path.string() +
                           "; copy it to change it");
  }
  if (!line.settings_source().empty()) {
    session.console().info("settings are those of " + line.settings_source() +
                           ", with the flags of this command over them");
  }
}

// Throws before anything is written.
void check_before_training(Session& session, const CommandLine& line,
                           const run::Recovery* recovery) {
  if (recovery != nullptr) {
    run::check_recovery(session.world(), line.config(), session.environment());
  }
  run::check_records(records_config(session, line));
  if (session.info().sync_batch_norm) {
    engine::check_batch_norm(session.batch(), session.data().train->size(),
                             line.config());
  }
  check_folder(session.world(), line, line.settings().files);
}

// Not where rank 0 has them open: it was not replaced, or has opened them since
// and lost another rank before it trained.
bool must_open_files(const World& world, const Start& start,
                     const OpenRun& run) {
  return !start.is_recovered || !world.any(run.records != nullptr);
}

// The weights in memory are the best model, which is then saved once more: its
// file may be lost with the rank that would have written it.
bool holds_best(const Start& start) {
  return start.is_recovered && start.state.best.value &&
         start.state.best.step == start.state.step;
}

// Folder, checkpoints and best model of the run.
void open_run(Session& session, const CommandLine& line,
              const run::CheckpointsConfig& files, Start& start, OpenRun& run) {
  const auto& resume = line.config().resume;
  open_folder(session, line,
              start.is_recovered ? FolderUse::kGoOn : FolderUse::kAsAsked, run);
  if (resume && !start.is_recovered) {
    leave_newer_behind(session, files, start.state);
  }
  if (start.is_resumed && !holds_best(start)) {
    settle_best(session, files, resume.value_or("latest"), start.state);
  }
}

std::optional<track::KeptRecords> records_to_keep(
    const Start& start, const TrainCallbacks& callbacks) {
  if (!start.is_resumed) return std::nullopt;
  return kept_records(start.state, callbacks.score_metric());
}

// Throws before anything is written.
std::vector<comm::ClusterSize> predicted_sizes(const CommandLine& line,
                                               const World& world) {
  if (line.predict().empty()) return {};
  return sizes_to_predict(line.predict(), world);
}

void use_micro_batch(const Start& start, StepLoader& loader) {
  if (!start.micro_batch) return;
  loader = loader.with_micro_batches_of(*start.micro_batch);
}

run::SavingConfig saves_of(const CommandLine& line,
                           const run::CheckpointsConfig& files,
                           const Start& start, TrainCallbacks& callbacks) {
  run::SavingConfig saves =
      saving_config(line.settings(), files.status, callbacks.replicas());
  saves.first_step = start.first_step;
  saves.is_recovered = start.is_recovered;
  return saves;
}

Outcome train(Session& session, const CommandLine& line,
              run::StopSignals& signals, run::Recovery* recovery,
              OpenRun& run) {
  const TrainConfig& config = line.config();
  const World& world = session.world();
  track::Console& console = session.console();
  const auto predicted = predicted_sizes(line, world);
  const bool is_recovery = recovery != nullptr && recovery->is_pending();
  if (is_recovery) session.follow_world();
  StepLoader loader = make_step_loader(session, config);
  const double base_lr =
      plan_learning_rate(session, config, loader, {}).base_lr;
  if (!is_recovery) check_before_training(session, line, recovery);
  run::CheckpointsConfig files = checkpoints_config(session, line, base_lr);
  Start start = start_training(session, config, files, recovery);
  use_micro_batch(start, loader);
  session.with_memory_report([] { return "preparing the data"; },
                             [&] { session.fill_cache(); });
  const LearningRatePlan plan =
      plan_learning_rate(session, config, loader, start.state);
  TrainCallbacks callbacks(session, line.settings(), plan);
  if (!is_recovery) log_settings_source(line, session);
  if (must_open_files(world, start, run)) {
    open_run(session, line, files, start, run);
    const auto kept = records_to_keep(start, callbacks);
    open_records(session, line, kept, plan.total_steps, run);
  }
  if (!is_recovery) log_setup(session, config, loader, plan, *start.learner);
  signals.arm(world.status());
  announce_training(files, start);
  if (run.records) {
    files.wait_for_records = [&] { run.records->wait_before_checkpoint(); };
  }
  run::Checkpoints checkpoints(files, *start.learner, world, console);
  run::SavingCallback saving(saves_of(line, files, start, callbacks),
                             checkpoints, signals);
  engine::TrainLoop loop(*start.learner, loader, world, console,
                         loop_config(config, plan, start, files.status,
                                     recovery, run.records.get()));
  ProfileCallback profile = profile_callback(session, line);
  std::vector<engine::Callback*> all = callbacks.with(saving);
  all.push_back(&profile);
  try {
    const run::StopRequest stopped_for =
        run_loop(session, loop, start.state, std::move(all), saving);
    if (!predicted.empty() && stopped_for == run::StopRequest::kNone) {
      console.info(
          prediction_text(predicted, callbacks.times(), *start.learner, world));
    }
    // So that its messages come before those about the data.
    if (run.records) run.records->wait();
    session.report_bad_samples();
    return finish(stopped_for, checkpoints, config, recovery);
  } catch (const std::exception& error) {
    if (recovery != nullptr && world.can_reform_after(error)) {
      recovery->keep(*start.learner, files);
    }
    throw;
  }
}

}  // namespace

int train_command(Recipe& recipe, const std::vector<std::string>& arguments,
                  const CommandContext& context) {
  CommandLine line(Purpose::kTrain, recipe, context.usage);
  if (const auto text = line.parse(arguments, context.environment)) {
    context.output.out(*text);
    return 0;
  }
  run::StopSignals signals;
  const base::Environment environment =
      run::recovery_environment(context.environment, line.config());
  Session session(recipe, line, context.output, environment);
  auto recovery = run::Recovery::from_environment(environment, session.world());
  OpenRun run;
  for (;;) {
    try {
      const Outcome outcome =
          train(session, line, signals, recovery ? &*recovery : nullptr, run);
      return close_run(outcome, run, session.console());
    } catch (const std::exception& error) {
      const bool is_reformed =
          recovery && session.world().can_reform_after(error) &&
          recovery->can_go_on() && recovery->wait_for_replacement();
      if (is_reformed) continue;
      session.console().log_error(comm::error_text(error));
      if (run.records) run.records->finish(exit_code(error), {});
      throw;
    }
  }
}

}  // namespace lockstep::cli

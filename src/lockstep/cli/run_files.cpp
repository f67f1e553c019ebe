#include "lockstep/cli/run_files.h"

#include <fmt/format.h>

#include <chrono>

#include "lockstep/config/render.h"
#include "lockstep/run/elastic_job.h"
#include "lockstep/run/run_folder.h"

namespace lockstep::cli {
namespace {

track::PlottedMetric plotted_metric(const TaskInfo& info) {
  return {.name = "val/" + info.best_metric,
          .better = info.better == Better::kHigher ? plot::Direction::kHigher
                                                   : plot::Direction::kLower};
}

// A cut-off start of the same job may still be ending.
base::FileDescriptor lock_folder(const std::filesystem::path& folder,
                                 const std::optional<run::RunFence>& fence) {
  constexpr std::chrono::seconds kOldStartEnds{30};
  const bool may_wait = fence && !fence->is_first_start();
  return run::lock_run_folder(
      folder, may_wait ? kOldStartEnds : std::chrono::seconds(0));
}

}  // namespace

void check_folder(const World& world, const CommandLine& line,
                  const FileNames& names) {
  world.run_on_rank0_and_broadcast([&] {
    const TrainConfig& config = line.config();
    run::check_folder_place(config.save_dir);
    if (!line.owns_folder()) {
      run::check_folder_is_free(config.save_dir, config, names);
    }
  });
}

void open_folder(Session& session, const CommandLine& line, FolderUse use,
                 OpenRun& run) {
  TrainConfig config = line.config();
  if (use == FolderUse::kGoOn) config.overwrite = false;
  const FileNames& names = line.settings().files;
  session.world().run_on_rank0_and_broadcast([&] {
    const std::filesystem::path folder = config.save_dir;
    run::make_folder(folder);
    if (config.fast_dev_run) {
      session.console().open_log(folder / "fast_dev_run.log");
      return;
    }
    const auto fence =
        run::RunFence::from_environment(folder, session.environment());
    // After ranks were replaced it may be held already.
    if (!run.lock) run.lock = lock_folder(folder, fence);
    if (fence) fence->claim();
    run::open_run_folder(folder, config, names,
                         line.config_text(session.first_start()));
    // A recipe may keep its logs in a separate folder.
    const auto log = folder / names.log;
    base::make_output_folder(log.parent_path());
    session.console().open_log(log);
  });
}

run::RunRecordsConfig records_config(const Session& session,
                                     const CommandLine& line) {
  return {.folder = line.config().save_dir,
          .recipe = session.recipe(),
          .log = line.settings().files.log,
          .num_processes = session.world().size(),
          .choices = line.config().records,
          .settings_json = config::to_json(line.options()),
          .settings_yaml = config::to_yaml(line.options()),
          .arguments = line.arguments(),
          .environment = session.environment(),
          .best = plotted_metric(session.info())};
}

void open_records(Session& session, const CommandLine& line,
                  const std::optional<track::KeptRecords>& resumed,
                  int64_t total_steps, OpenRun& run) {
  if (line.config().fast_dev_run) return;
  session.world().run_on_rank0_and_broadcast([&] {
    run::RunRecordsConfig config = records_config(session, line);
    if (resumed) config.resumed = *resumed;
    config.total_steps = total_steps;
    run.records = std::make_unique<run::RunRecords>(config, session.console());
  });
}

// A checkpoint is saved before its step is scored.
track::KeptRecords kept_records(const engine::TrainState& state,
                                const std::string& score) {
  track::KeptRecords kept{.last_step = state.step};
  // Logging comes first after a step.
  if (state.due.logging) --kept.last_step;
  if (state.due.scoring) kept.redone = score;
  if (state.due.validation) kept.redone = "val/";
  return kept;
}

void leave_newer_behind(Session& session, const run::CheckpointsConfig& files,
                        const engine::TrainState& state) {
  session.world().run_on_rank0_and_broadcast([&] {
    const auto aside =
        run::set_aside(files.folder, run::newer_checkpoints(files, state.step));
    if (aside.empty()) return;
    session.console().info(fmt::format(
        "checkpoints after step {} and a copy of the metrics are now in {}",
        state.step, aside.string()));
  });
}

void settle_best(Session& session, const run::CheckpointsConfig& files,
                 const std::string& resume, engine::TrainState& state) {
  const bool is_there =
      !state.best.value || session.world().run_on_rank0_and_broadcast([&] {
        return run::keep_best(files, resume, state.best.step) ? 1 : 0;
      }) != 0;
  if (is_there) return;
  session.console().info(fmt::format(
      "the best model so far, of step {}, is not in {}: the next validation "
      "counts as the best",
      state.best.step, files.folder.string()));
  state.best = {};
}

}  // namespace lockstep::cli

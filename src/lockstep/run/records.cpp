#include "lockstep/run/records.h"

#include <fmt/format.h>

#include "lockstep/base/clock.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"
#include "lockstep/base/run_note.h"
#include "lockstep/error.h"
#include "lockstep/run/run_folder.h"
#include "lockstep/track/csv_file.h"
#include "lockstep/track/metrics_file.h"
#include "lockstep/track/output_files.h"
#include "lockstep/track/plot_tracker.h"
#include "lockstep/track/run_file.h"
#include "lockstep/track/tensorboard.h"
#include "lockstep/track/wandb_sync.h"
#include "lockstep/track/wandb_tracker.h"

namespace lockstep::run {
namespace {

using Trackers = std::vector<std::unique_ptr<track::Tracker>>;

track::WandbConfig wandb_config(const RunRecordsConfig& config) {
  const RecordsConfig& choices = config.choices;
  track::WandbConfig wandb{.project = choices.wandb_project,
                           .name = choices.wandb_name,
                           .entity = choices.wandb_entity,
                           .notes = choices.wandb_notes,
                           .config_json = config.settings_json,
                           .program = "lockstep train " + config.recipe,
                           .arguments = config.arguments,
                           .state_file = config.folder / kWandbFile};
  if (!choices.wandb_tags.empty()) wandb.tags = choices.wandb_tags;
  return track::with_environment(std::move(wandb), config.environment);
}

std::unique_ptr<track::Tracker> make_sync(const RunRecordsConfig& config,
                                          const track::WandbRun& run,
                                          track::Console& console) {
  const auto client = track::find_wandb_client(config.environment);
  if (!client) {
    console.warn(track::missing_wandb_client_text(run));
    return nullptr;
  }
  console.info(fmt::format("wandb: run in {}, sent by {} while it trains",
                           run.folder.string(), client->string()));
  return std::make_unique<track::WandbSync>(track::WandbSyncConfig{
      .client = *client,
      .run = run,
      .environment = config.environment,
      .exit_timeout = std::chrono::milliseconds(
          static_cast<int64_t>(config.choices.wandb_exit_timeout * 1000)),
      .on_info = [&console](const std::string& text) { console.info(text); },
      .on_warning =
          [&console](const std::string& text) { console.warn(text); }});
}

struct WandbTrackers {
  std::unique_ptr<track::Tracker> record = {};  // Null if disabled.
  std::unique_ptr<track::Tracker> sync = {};    // Null if offline.
};

WandbTrackers make_wandb(const RunRecordsConfig& config,
                         track::Console& console) {
  const track::WandbConfig wandb = wandb_config(config);
  if (!config.choices.use_wandb || wandb.mode == track::WandbMode::kDisabled) {
    return {};
  }
  auto tracker = std::make_unique<track::WandbTracker>(wandb, config.resumed);
  if (!tracker->note().empty()) console.warn(tracker->note());
  WandbTrackers result;
  if (wandb.mode == track::WandbMode::kOnline) {
    result.sync = make_sync(
        config, {.id = tracker->run_id(), .folder = tracker->folder()},
        console);
  } else {
    console.info("wandb: offline run in " + tracker->folder().string());
  }
  result.record = std::move(tracker);
  return result;
}

std::unique_ptr<track::Tracker> make_board(
    const RunRecordsConfig& config, const std::filesystem::path& metrics) {
  if (!config.choices.tensorboard) return nullptr;
  auto board = std::make_unique<track::TensorBoardTracker>(
      track::TensorBoardConfig{.folder = config.folder / kTensorBoardFolder,
                               .kept = config.resumed,
                               .metrics = metrics});
  if (!config.resumed) {
    board->record(
        {.unix_time = static_cast<double>(base::unix_seconds()),
         .texts = {{.title = "config",
                    .text = "```yaml\n" + config.settings_yaml + "```\n"}}});
  }
  return board;
}

std::unique_ptr<track::Tracker> make_run_file(const RunRecordsConfig& config) {
  // The verdict on an earlier part of the run says nothing about this one.
  std::error_code ignored;
  std::filesystem::remove(config.folder / base::kVerdictFile, ignored);
  base::note_run_folder(base::process_environment(), config.folder);
  track::RunInfo info{.recipe = config.recipe,
                      .num_processes = config.num_processes,
                      .total_steps = config.total_steps,
                      .log = config.log,
                      .best = config.best};
  if (config.resumed) {
    const auto text = base::try_read_file(config.folder / track::kRunFile);
    const auto before = text ? track::parse_run_info(*text) : std::nullopt;
    if (before) info.started = before->started;
  }
  return std::make_unique<track::RunFile>(config.folder, std::move(info));
}

Trackers make_trackers(const RunRecordsConfig& config,
                       track::Console& console) {
  const std::filesystem::path metrics = config.folder / kMetricsFile;
  Trackers trackers;
  const auto add = [&](const auto& make) {
    try {
      if (auto tracker = make()) trackers.push_back(std::move(tracker));
    } catch (const IoError& error) {
      // A failing tracker must not end a resumed run.
      if (!config.resumed) throw;
      console.error(fmt::format("{}; training goes on without this record",
                                error.what()));
    }
  };
  // Created first: the others start from the records it keeps of an earlier
  // part.
  add([&] {
    return std::make_unique<track::MetricsFile>(
        metrics, config.resumed.value_or(track::KeptRecords{}));
  });
  add([&] { return make_run_file(config); });
  add([&] {
    return std::make_unique<track::CsvFile>(config.folder / kMetricsTable,
                                            metrics);
  });
  add([&] {
    return std::make_unique<track::OutputFiles>(track::OutputFilesConfig{
        .folder = config.folder,
        .on_written = [&console](const std::filesystem::path& path) {
          console.info("samples: " + path.string());
        }});
  });
  add([&] { return make_board(config, metrics); });
  WandbTrackers wandb;
  add([&] {
    wandb = make_wandb(config, console);
    return std::move(wandb.record);
  });
  add([&] {
    return std::make_unique<track::PlotTracker>(track::PlotConfig{
        .folder = config.folder,
        .title = config.recipe + ": " + config.folder.string(),
        .metrics = metrics,
        .best = config.best,
        .on_warning = [&console](const std::string& warning) {
          console.warn(warning);
        }});
  });
  // Last: at the end it waits for the upload.
  add([&] { return std::move(wandb.sync); });
  return trackers;
}

}  // namespace

void check_records(const RunRecordsConfig& config) {
  if (!config.choices.use_wandb) return;
  const track::WandbConfig wandb = wandb_config(config);
  track::check_wandb_names(wandb);
  if (wandb.mode == track::WandbMode::kDisabled) return;
  const auto folder =
      wandb.folder.value_or(std::filesystem::current_path()) / "wandb";
  if (const auto problem = folder_problem(folder)) {
    throw ConfigError(
        fmt::format("--use_wandb needs the folder {}: {}; set WANDB_DIR to a "
                    "folder that can be written, or say --no_use_wandb",
                    folder.string(), *problem));
  }
}

RunRecords::RunRecords(const RunRecordsConfig& config, track::Console& console)
    : console_(console),
      recorder_(std::make_unique<track::Recorder>(
          track::RecorderConfig{.on_problem =
                                    [&console](const std::string& problem) {
                                      console.error(problem);
                                    }},
          make_trackers(config, console))) {
  console_.listen([this](track::Level level, const std::string& lines) {
    recorder_->console(
        {.is_error = level != track::Level::kInfo, .text = lines});
  });
}

RunRecords::~RunRecords() { console_.listen({}); }

void RunRecords::finish(int exit_code, const std::string& last_line) {
  if (!last_line.empty()) recorder_->console({.text = last_line + "\n"});
  recorder_->finish(exit_code);
}

}  // namespace lockstep::run

// The run folder: creates and locks it, and protects existing runs.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"
#include "lockstep/checkpoint_layout.h"
#include "lockstep/train_config.h"

namespace lockstep::run {

// "config.yaml" marks a folder that holds a run.
constexpr const char* kConfigFile = "config.yaml";
constexpr const char* kMetricsFile = "metrics.jsonl";
constexpr const char* kMetricsTable = "metrics.csv";
constexpr const char* kTensorBoardFolder = "tensorboard";
constexpr const char* kLockFile = ".lock";
// The id of the run in Weights & Biases.
constexpr const char* kWandbFile = "wandb.json";

// The first line of a run's config: the launcher job that wrote it. Empty
// without a launcher.
std::string job_line(const base::Environment& environment);

// How often the launcher has restarted this job, or Slurm requeued it.
int64_t restart_count(const base::Environment& environment);

// Call it before anything is written. Throws ConfigError if the folder cannot
// be created or written to.
void check_folder_place(const std::filesystem::path& path);

// Why the folder cannot be created or written to; no value if it can.
std::optional<std::string> folder_problem(const std::filesystem::path& path);

// Throws ConfigError if the folder holds a run that is neither resumed by
// --resume nor deleted by --overwrite, or if --resume names a file that does
// not exist.
void check_folder_is_free(const std::filesystem::path& path,
                          const TrainConfig& config, const FileNames& names);

// Locks the folder until the descriptor is closed: only one training at a time
// writes to it. Waits for `patience` if another holds it. Throws IoError, and
// ConfigError that names the process holding the lock.
base::FileDescriptor lock_run_folder(const std::filesystem::path& path,
                                     std::chrono::milliseconds patience = {});

// Throws ConfigError if it cannot be created.
void make_folder(const std::filesystem::path& path);

// Creates the folder and writes the run's config. --overwrite deletes the old
// run's checkpoints and log; temporary files of killed writers are always
// deleted. Throws ConfigError and IoError.
void open_run_folder(const std::filesystem::path& path,
                     const TrainConfig& config, const FileNames& names,
                     const std::string& config_yaml);

bool has_checkpoints(const std::filesystem::path& folder,
                     const FileNames& names);

// For a run resumed from an older checkpoint: moves the `newer` checkpoints and
// a copy of the metrics to a subfolder. Returns its path; empty if there are
// none.
std::filesystem::path set_aside(
    const std::filesystem::path& folder,
    const std::vector<std::filesystem::path>& newer);

// The settings that a run was started with.
struct SavedSettings {
  std::string text = {};    // YAML.
  std::string source = {};  // The file they were read from.
  // Why the folder's config was not used; empty if it was, or if another file
  // was requested.
  std::string problem = {};
};

// "# recipe: tiny", a line of the folder's config.
std::string recipe_line(const std::string& recipe);

struct SettingsQuery {
  std::string resume = {};  // "latest", or a checkpoint.
  std::filesystem::path folder = {};
  FileNames names = {};
  std::string recipe = {};
};

// For 'latest': from the folder's config, or from its newest checkpoint if the
// config is missing or damaged. Otherwise from the given checkpoint. No value
// if there are none. Throws ConfigError if they belong to another recipe.
std::optional<SavedSettings> saved_settings(const SettingsQuery& query);

// From the folder's newest checkpoint that has settings.
std::optional<SavedSettings> newest_checkpoint_settings(
    const SettingsQuery& query);

// Throws ConfigError with the flag unless the path is a file.
void require_file(const char* flag, const std::filesystem::path& path);

}  // namespace lockstep::run

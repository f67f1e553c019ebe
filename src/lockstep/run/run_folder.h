// The folder of a run: what may be written where, and never over another run.
#pragma once

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
// Which run of Weights & Biases this one is.
constexpr const char* kWandbFile = "wandb.json";

// The first line of a run's config: which job of a launcher wrote it. Empty
// without a launcher.
std::string job_line(const base::Environment& environment);

// Before anything is written. Throws ConfigError when no folder can be made
// there or written to.
void check_folder_place(const std::filesystem::path& path);

// Why no folder can be made there or written to; no value when it can.
std::optional<std::string> folder_problem(const std::filesystem::path& path);

// Throws ConfigError when it holds a run that neither --resume goes on with nor
// --overwrite throws away, and when --resume names a file that is not there.
void check_folder_is_free(const std::filesystem::path& path,
                          const TrainConfig& config, const FileNames& names);

// Only one training at a time writes to a run folder: it is locked as long as
// the descriptor lives. Throws ConfigError, saying who has it, and IoError.
base::FileDescriptor lock_run_folder(const std::filesystem::path& path);

// Throws ConfigError when it cannot be made.
void make_folder(const std::filesystem::path& path);

// Makes the folder and writes the run's config into it. With --overwrite the
// old run's checkpoints and log go; what killed writers left half-done goes in
// any case. Throws ConfigError and IoError.
void open_run_folder(const std::filesystem::path& path,
                     const TrainConfig& config, const FileNames& names,
                     const std::string& config_yaml);

bool has_checkpoints(const std::filesystem::path& folder,
                     const FileNames& names);

// A run that goes on from an older checkpoint leaves what came after it: the
// `newer` checkpoints and a copy of the metrics go to a folder of their own
// below, whose path is returned; empty when there are none.
std::filesystem::path set_aside(
    const std::filesystem::path& folder,
    const std::vector<std::filesystem::path>& newer);

// The settings that a run was started with.
struct SavedSettings {
  std::string text = {};    // YAML.
  std::string source = {};  // The file that they are from.
  // Why they are not from the folder's config; empty: they are, or the config
  // was not asked for.
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

// For 'latest' those of the folder's config, or of its newest checkpoint when
// the config is missing or visibly damaged; else those in the checkpoint. No
// value when there are none. Throws ConfigError when they are of another
// recipe.
std::optional<SavedSettings> saved_settings(const SettingsQuery& query);

// Those of the folder's newest checkpoint that has any.
std::optional<SavedSettings> newest_checkpoint_settings(
    const SettingsQuery& query);

// Throws ConfigError with the flag unless the path is a file.
void require_file(const char* flag, const std::filesystem::path& path);

}  // namespace lockstep::run

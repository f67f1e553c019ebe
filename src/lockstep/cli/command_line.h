// The command line of a recipe: common settings and its own.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/config/parse.h"
#include "lockstep/config/render.h"
#include "lockstep/recipe.h"
#include "lockstep/run/elastic_job.h"

namespace lockstep::cli {

// For usage and help.
struct UsageConfig {
  // Name of a program that is one recipe; empty for `lockstep`.
  std::string program = {};
  // Flags of the launcher to show; empty: none.
  std::vector<config::HelpRow> launching = {};
  // Names of all its flags, to suggest for an unknown one.
  std::vector<std::string> launch_flags = {};
};

// Options point into this object: it must not move.
class CommandLine {
 public:
  // Lets the recipe describe its settings.
  CommandLine(Purpose purpose, Recipe& recipe, UsageConfig usage = {});
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Reads and checks flags and files. Returns a text to print instead of
  // running (--help, --help_all, --print_config), or no value. Throws
  // ConfigError.
  std::optional<std::string> parse(const std::vector<std::string>& arguments,
                                   const base::Environment& environment);

  Purpose purpose() const { return purpose_; }
  const std::vector<std::string>& arguments() const { return arguments_; }
  const Settings& settings() const { return settings_; }
  const TrainConfig& config() const { return settings_.common; }
  const Options& options() const { return settings_.options; }
  // The config file of the run folder: job, recipe and all settings as YAML.
  // In an elastic job also how it was started first.
  std::string config_text(
      const std::optional<run::FirstStart>& first_start = {}) const;
  // For eval and sample.
  const std::string& checkpoint() const { return checkpoint_; }
  // Sizes of clusters whose step times shall be predicted; empty: none.
  const std::string& predict() const { return predict_; }
  std::optional<int64_t> average() const { return average_; }
  bool scores() const { return scores_; }  // For eval.
  // Steps to profile; no value: none.
  std::optional<int64_t> profile() const { return profile_; }
  // Whether this is a restart of the job that created the run folder.
  bool owns_folder() const { return owns_folder_; }
  // The file that a resumed run's settings were read from; else empty.
  const std::string& settings_source() const { return settings_source_; }
  // Files of --config that the working folder lacks and Lockstep ships.
  const std::vector<std::filesystem::path>& shipped_files() const {
    return shipped_files_;
  }
  // Why the run folder's config was not used, for a warning.
  const std::string& settings_note() const { return settings_note_; }

 private:
  // Trains or prepares: --resume instead of --checkpoint.
  bool is_training() const {
    return purpose_ == Purpose::kTrain || purpose_ == Purpose::kPrepare;
  }
  // "lockstep train tiny", or "my_program train".
  std::string command() const;
  std::string usage() const;
  config::ParseConfig parse_config() const;
  enum class HelpLevel { kMostUsed, kAll };
  std::string help(HelpLevel level);
  void show_acting_defaults();
  void shorten_for_dry_run();
  void drop_beaten_settings();
  void resume_after_restart(const base::Environment& environment);
  void take_over_settings(const std::vector<std::string>& arguments);
  bool apply_saved_settings(const std::string& from,
                            const std::filesystem::path& folder);

  Purpose purpose_;
  std::string recipe_name_;
  std::string recipe_summary_;
  UsageConfig usage_;
  std::vector<std::string> arguments_;
  std::string job_line_;
  std::string settings_source_;
  std::string settings_note_;
  std::vector<std::filesystem::path> shipped_files_;
  bool owns_folder_ = false;
  std::string checkpoint_;
  std::string predict_;
  std::optional<int64_t> average_;
  bool scores_ = false;
  std::optional<int64_t> profile_;
  Settings settings_;
};

}  // namespace lockstep::cli

#include "lockstep/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "lockstep/base/files.h"
#include "lockstep/config/parse.h"
#include "lockstep/config/render.h"
#include "lockstep/error.h"
#include "lockstep/run/run_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Settings that say the same in two ways: one that is typed beats the others of
// a run that goes on.
constexpr std::array<std::array<std::string_view, 3>, 8> kRivals = {{
    {"n_steps", "epochs"},
    {"val_every", "val_every_epochs"},
    {"save_every", "save_every_epochs"},
    {"warmup_steps", "warmup_epochs"},
    {"use_amp", "precision"},
    {"overfit_batches", "limit_train_batches"},
    {"blr", "lr"},
    {"batch_size", "global_batch_size", "gradient_accumulation_steps"},
}};

const char* name_of(Command command) {
  switch (command) {
    case Command::kTrain: return "train";
    case Command::kEval: return "eval";
    case Command::kSample: return "sample";
  }
  return "";
}

}  // namespace

CommandLine::CommandLine(Command command, Recipe& recipe)
    : command_(command), recipe_(recipe) {
  describe_common(options_, config_);
  if (command != Command::kTrain) {
    options_.add("checkpoint", checkpoint_, "the weights: a checkpoint file",
                 {.group = "Run", .once = true});
    options_.add("ema", average_,
                 "use this moving average of the weights, counted from 0",
                 {.minimum = 0, .group = "Run", .once = true});
  }
  if (command == Command::kEval) {
    options_.add("fid", scores_, "score generated images, too",
                 {.group = "Run", .once = true});
  }
  recipe.describe(options_, config_);
  options_.refresh_defaults();
  recipe_name_ = recipe.facts().name;
}

std::optional<std::string> CommandLine::parse(
    const std::vector<std::string>& arguments, const Environment& environment) {
  const ParsedCommand parsed = parse_command(options_, arguments);
  if (parsed.help) {
    return help_text(options_, fmt::format("lockstep {} {} [flags]",
                                           name_of(command_), recipe_name_));
  }
  if (!parsed.positionals.empty()) {
    throw ConfigError(fmt::format(
        "'{}' belongs to no flag; lockstep {} {} --help lists the flags",
        parsed.positionals[0], name_of(command_), recipe_name_));
  }
  if (command_ != Command::kTrain && checkpoint_.empty()) {
    throw ConfigError(
        fmt::format("--checkpoint FILE is missing: which weights "
                    "shall {} use?",
                    name_of(command_)));
  }
  if (command_ != Command::kTrain) require_file("--checkpoint", checkpoint_);
  arguments_ = arguments;
  job_line_ = job_line(environment);
  recipe_.resolve_defaults(options_, config_);
  drop_beaten_settings();
  check_config(config_, options_);
  if (command_ == Command::kTrain) resume_after_restart(environment);
  take_over_settings(arguments);
  recipe_.resolve_defaults(options_, config_);
  drop_beaten_settings();
  check_config(config_, options_);
  if (parsed.print_config) return config_text();
  check_launch_words(config_.launch, environment);
  if (config_.fast_dev_run) shorten_for_dry_run();
  return std::nullopt;
}

void CommandLine::shorten_for_dry_run() {
  config_.n_steps = 1;
  config_.log_every = 1;
  config_.val_every = 1;
  config_.limit_val_batches = 1;
  config_.sample_every = 1;
  if (config_.score.every) config_.score.every = 1;
}

// What a recipe counts in steps by default is counted in epochs when these are
// given. A warm-up has one length: a flag replaces the other unit's value of a
// file or of the recipe, and a file that of the recipe.
void CommandLine::drop_beaten_settings() {
  const auto drop = [this](std::string_view steps, std::string_view epochs,
                           std::optional<int64_t>& value) {
    if (options_.was_given(epochs) && !options_.was_given(steps)) value.reset();
  };
  drop("n_steps", "epochs", config_.n_steps);
  drop("val_every", "val_every_epochs", config_.val_every);
  drop("save_every", "save_every_epochs", config_.save_every);
  const Source steps = options_.source("warmup_steps");
  const Source epochs = options_.source("warmup_epochs");
  if (steps > epochs) config_.optimization.warmup_epochs = 0;
  if (epochs > steps) config_.optimization.warmup_steps = 0;
}

std::string CommandLine::config_text() const {
  return job_line_ + recipe_line(recipe_name_) + to_yaml(options_);
}

// A launcher that restarts a training wants it to go on, not to begin anew. A
// run that another job has left in the folder is not what it goes on with, and
// before the first checkpoint the command's own --resume still counts.
void CommandLine::resume_after_restart(const Environment& environment) {
  const auto restarts = find_integer(environment, "TORCHELASTIC_RESTART_COUNT");
  if (restarts.value_or(0) == 0 || config_.fast_dev_run) return;
  const fs::path folder = config_.save_dir;
  const auto before = try_read_file(folder / kConfigFile);
  if (!before || job_line_.empty() || !before->starts_with(job_line_)) return;
  owns_folder_ = true;
  config_.overwrite = false;
  if (!config_.resume || has_checkpoints(folder, recipe_.facts().files)) {
    config_.resume = "latest";
  }
}

// A run goes on with its own settings, also when they are not typed again, and
// its weights are used with them. Those of the command line win, as they do
// over any file.
void CommandLine::take_over_settings(
    const std::vector<std::string>& arguments) {
  const bool is_resumed = command_ == Command::kTrain;
  if (is_resumed && !config_.resume) return;
  const std::string from = is_resumed ? *config_.resume : checkpoint_;
  const fs::path typed_folder = config_.save_dir;
  const bool is_folder_typed = options_.was_given("save_dir");
  std::vector<std::string_view> beaten;
  for (const auto& rivals : kRivals) {
    const bool is_typed =
        std::any_of(rivals.begin(), rivals.end(), [&](std::string_view name) {
          return !name.empty() && options_.has(name) &&
                 options_.was_given(name);
        });
    for (const std::string_view name : rivals) {
      if (is_typed && !name.empty() && options_.has(name) &&
          !options_.was_given(name)) {
        beaten.push_back(name);
      }
    }
  }
  if (!apply_saved_settings(from, typed_folder)) return;
  parse_command(options_, arguments);
  for (const std::string_view name : beaten) options_.reset(name);
  // Where the run is now, not where it was when it began.
  const bool is_latest = is_resumed && from == "latest";
  config_.save_dir = is_folder_typed || is_latest
                         ? typed_folder
                         : fs::path(from).parent_path();
  if (config_.save_dir.empty()) config_.save_dir = ".";
  if (is_resumed) config_.resume = from;
  config_.overwrite = false;
}

// False: there are none. Unless a file was asked for, the checkpoints of the
// folder stand in for a config that is missing or damaged.
bool CommandLine::apply_saved_settings(const std::string& from,
                                       const fs::path& folder) {
  const SettingsQuery query{.resume = from,
                            .folder = folder,
                            .names = recipe_.facts().files,
                            .recipe = recipe_name_};
  auto settings = saved_settings(query);
  if (!settings) return false;
  try {
    apply_yaml_text(options_, settings->text, settings->source);
  } catch (const ConfigError& error) {
    const bool is_config = from == "latest" && settings->problem.empty();
    auto in_checkpoint = newest_checkpoint_settings(query);
    if (!is_config || !in_checkpoint) throw;
    settings = std::move(in_checkpoint);
    settings->problem = error.what();
    apply_yaml_text(options_, settings->text, settings->source);
  }
  settings_source_ = settings->source;
  if (!settings->problem.empty()) {
    settings_note_ = fmt::format("{}; the run's settings are taken from {}",
                                 settings->problem, settings->source);
  }
  return true;
}

}  // namespace lockstep

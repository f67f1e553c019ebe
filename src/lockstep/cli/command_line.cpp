#include "lockstep/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "lockstep/base/files.h"
#include "lockstep/cli/help.h"
#include "lockstep/cli/launch_words.h"
#include "lockstep/config/groups.h"
#include "lockstep/config/parse.h"
#include "lockstep/config/render.h"
#include "lockstep/engine/common_settings.h"
#include "lockstep/error.h"
#include "lockstep/run/run_folder.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

// Alternative settings: a flag replaces the others in a resumed run's settings.
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

const char* name_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::kTrain: return "train";
    case Purpose::kEval: return "eval";
    case Purpose::kSample: return "sample";
    case Purpose::kPrepare: return "prepare";
  }
  return "";
}

// Where files are installed with the programs: ../share/lockstep.
fs::path shipped_folder() {
  std::error_code problem;
  const fs::path program = fs::read_symlink("/proc/self/exe", problem);
  if (problem) return {};
  return program.parent_path().parent_path() / "share" / "lockstep";
}

}  // namespace

CommandLine::CommandLine(Purpose purpose, Recipe& recipe, UsageConfig usage)
    : purpose_(purpose),
      recipe_name_(recipe.name()),
      recipe_summary_(recipe.summary()),
      usage_(std::move(usage)) {
  Options& options = settings_.options;
  if (!is_training()) {
    options.add("checkpoint", checkpoint_, "the weights: a checkpoint file",
                {.group = "Run", .once = true});
    options.add("ema", average_,
                "use this moving average of the weights, counted from 0",
                {.minimum = 0, .group = "Run", .once = true});
  }
  if (purpose == Purpose::kTrain) {
    options.add("predict", predict_,
                "at the end, predict step times on so many nodes x processes, "
                "for example 8x8,64x8",
                {.group = "Run", .once = true});
  }
  if (purpose == Purpose::kEval) {
    options.add("fid", scores_, "score generated images, too",
                {.group = "Run", .once = true});
  }
  if (purpose == Purpose::kTrain) {
    options.add("profile", profile_,
                "record this many steps after a warm-up of 10: what they spend "
                "their time on, and a trace for Perfetto in save_dir/profile",
                {.minimum = 1, .group = "Run", .once = true});
  }
  recipe.describe(settings_);
  options.refresh_defaults();
}

std::string CommandLine::command() const {
  return usage_.program.empty()
             ? fmt::format("lockstep {} {}", name_of(purpose_), recipe_name_)
             : fmt::format("{} {}", usage_.program, name_of(purpose_));
}

std::string CommandLine::usage() const {
  if (usage_.program.empty()) {
    return command() + (is_training() ? "" : " --checkpoint FILE") +
           " [--nproc N] [flags]";
  }
  return fmt::format(
      "{0} [train|eval|sample|prepare] [flags]\n"
      "       lockstep run --nproc N {0} ...",
      usage_.program);
}

// Rules change defaults that depend on others: help shows the result. A default
// "auto" stays, which says that it depends on what is given.
void CommandLine::show_acting_defaults() {
  Options& options = settings_.options;
  std::vector<std::string> automatic;
  for (const Setting& setting : options.settings()) {
    if (config::default_text(setting) == "auto")
      automatic.push_back(setting.name);
  }
  try {
    settings_.resolve();
  } catch (const ConfigError&) {
    return;  // Something that has no default must be given.
  }
  options.refresh_defaults();
  for (const std::string& name : automatic) options.show_default(name, "auto");
}

std::string CommandLine::help(HelpLevel level) {
  show_acting_defaults();
  const HelpConfig config{.purpose = purpose_,
                          .usage = usage(),
                          .about = recipe_name_ + ": " + recipe_summary_,
                          .command = command(),
                          .launching = usage_.launching};
  return level == HelpLevel::kAll ? full_help(settings_.options, config)
                                  : short_help(settings_.options, config);
}

config::ParseConfig CommandLine::parse_config() const {
  return {.shipped = shipped_folder(), .launch_flags = usage_.launch_flags};
}

std::optional<std::string> CommandLine::parse(
    const std::vector<std::string>& arguments,
    const base::Environment& environment) {
  const config::ParsedCommand parsed =
      config::parse_command(settings_.options, arguments, parse_config());
  shipped_files_ = parsed.shipped_files;
  if (parsed.help) {
    return help(parsed.help_all ? HelpLevel::kAll : HelpLevel::kMostUsed);
  }
  // `lockstep train --lr 1 ring` with a program that is the recipe ring.
  const bool is_own_name = !usage_.program.empty() &&
                           parsed.positionals == std::vector{recipe_name_};
  if (!parsed.positionals.empty() && !is_own_name) {
    throw ConfigError(
        fmt::format("'{}' belongs to no flag; {} --help_all lists the flags",
                    parsed.positionals[0], command()));
  }
  if (!is_training() && checkpoint_.empty()) {
    throw ConfigError(fmt::format(
        "--checkpoint FILE is missing: the weights for {}", name_of(purpose_)));
  }
  if (!is_training()) run::require_file("--checkpoint", checkpoint_);
  arguments_ = arguments;
  job_line_ = run::job_line(environment);
  settings_.resolve();
  drop_beaten_settings();
  engine::check_config(settings_.common, settings_.options);
  if (is_training()) resume_after_restart(environment);
  take_over_settings(arguments);
  settings_.resolve();
  drop_beaten_settings();
  engine::check_config(settings_.common, settings_.options);
  if (parsed.print_config) return config_text();
  check_launch_words(settings_.common.launch, environment);
  if (settings_.common.fast_dev_run) shorten_for_dry_run();
  return std::nullopt;
}

void CommandLine::shorten_for_dry_run() {
  settings_.common.n_steps = 1;
  settings_.common.log_every = 1;
  settings_.common.val_every = 1;
  settings_.common.limit_val_batches = 1;
  settings_.common.sample_every = 1;
  if (settings_.common.score.every) settings_.common.score.every = 1;
}

// A default in steps is dropped when the setting in epochs is given. Warm-up
// has one length: a flag replaces the other unit's value from a file or the
// recipe, and a file that of the recipe.
void CommandLine::drop_beaten_settings() {
  const auto drop = [this](std::string_view steps, std::string_view epochs,
                           std::optional<int64_t>& value) {
    if (settings_.options.was_given(epochs) &&
        !settings_.options.was_given(steps))
      value.reset();
  };
  drop("n_steps", "epochs", settings_.common.n_steps);
  drop("val_every", "val_every_epochs", settings_.common.val_every);
  drop("save_every", "save_every_epochs", settings_.common.save_every);
  const Source steps = settings_.options.source("warmup_steps");
  const Source epochs = settings_.options.source("warmup_epochs");
  if (steps > epochs) settings_.common.optimization.warmup_epochs = 0;
  if (epochs > steps) settings_.common.optimization.warmup_steps = 0;
}

std::string CommandLine::config_text(
    const std::optional<run::FirstStart>& first_start) const {
  return job_line_ + run::recipe_line(recipe_name_) +
         (first_start ? run::first_start_line(*first_start) : "") +
         config::to_yaml(settings_.options);
}

// After a restart by the launcher or Slurm training resumes instead of starting
// over. A run that another job left in the folder is not resumed, and before
// the first checkpoint the command's own --resume still applies.
void CommandLine::resume_after_restart(const base::Environment& environment) {
  if (run::restart_count(environment) == 0 || settings_.common.fast_dev_run) {
    return;
  }
  const fs::path folder = settings_.common.save_dir;
  const auto before = base::try_read_file(folder / run::kConfigFile);
  if (!before || job_line_.empty() || !before->starts_with(job_line_)) return;
  owns_folder_ = true;
  settings_.common.overwrite = false;
  if (!settings_.common.resume ||
      run::has_checkpoints(folder, settings_.files)) {
    settings_.common.resume = "latest";
  }
}

// A resumed run keeps its settings, and eval and sample use them. Flags
// override them, as they override any file.
void CommandLine::take_over_settings(
    const std::vector<std::string>& arguments) {
  const bool is_resumed = is_training();
  if (is_resumed && !settings_.common.resume) return;
  const std::string from = is_resumed ? *settings_.common.resume : checkpoint_;
  const fs::path typed_folder = settings_.common.save_dir;
  const bool is_folder_typed = settings_.options.was_given("save_dir");
  std::vector<std::string_view> beaten;
  for (const auto& rivals : kRivals) {
    const bool is_typed =
        std::any_of(rivals.begin(), rivals.end(), [&](std::string_view name) {
          return !name.empty() && settings_.options.has(name) &&
                 settings_.options.was_given(name);
        });
    for (const std::string_view name : rivals) {
      if (is_typed && !name.empty() && settings_.options.has(name) &&
          !settings_.options.was_given(name)) {
        beaten.push_back(name);
      }
    }
  }
  if (!apply_saved_settings(from, typed_folder)) return;
  config::parse_command(settings_.options, arguments, parse_config());
  for (const std::string_view name : beaten) settings_.options.reset(name);
  // The run folder may have moved since the run began.
  const bool is_latest = is_resumed && from == "latest";
  settings_.common.save_dir = is_folder_typed || is_latest
                                  ? typed_folder
                                  : fs::path(from).parent_path();
  if (settings_.common.save_dir.empty()) settings_.common.save_dir = ".";
  if (is_resumed) settings_.common.resume = from;
  settings_.common.overwrite = false;
}

// False if there are none. Unless a file was requested, the folder's
// checkpoints replace a config that is missing or damaged.
bool CommandLine::apply_saved_settings(const std::string& from,
                                       const fs::path& folder) {
  const run::SettingsQuery query{.resume = from,
                                 .folder = folder,
                                 .names = settings_.files,
                                 .recipe = recipe_name_};
  auto settings = run::saved_settings(query);
  if (!settings) return false;
  try {
    config::apply_yaml_text(settings_.options, settings->text,
                            settings->source);
  } catch (const ConfigError& error) {
    const bool is_config = from == "latest" && settings->problem.empty();
    auto in_checkpoint = run::newest_checkpoint_settings(query);
    if (!is_config || !in_checkpoint) throw;
    settings = std::move(in_checkpoint);
    settings->problem = error.what();
    config::apply_yaml_text(settings_.options, settings->text,
                            settings->source);
  }
  settings_source_ = settings->source;
  if (!settings->problem.empty()) {
    settings_note_ = fmt::format("{}; the run's settings are taken from {}",
                                 settings->problem, settings->source);
  }
  return true;
}

}  // namespace lockstep::cli

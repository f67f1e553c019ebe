#include "lockstep/train/command_line.h"

#include <fmt/format.h>

#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/files.h"
#include "lockstep/config/parse.h"
#include "lockstep/config/render.h"
#include "lockstep/train/run_folder.h"

namespace lockstep {
namespace {

const char* name_of(Command command) {
  switch (command) {
    case Command::kTrain: return "train";
    case Command::kEval: return "eval";
    case Command::kSample: return "sample";
  }
  return "";
}

}  // namespace

CommandLine::CommandLine(Command command, Recipe& recipe) : command_(command) {
  describe_common(options_, config_);
  if (command != Command::kTrain) {
    options_.add("checkpoint", checkpoint_, "the weights: a checkpoint file",
                 {.group = "Run"});
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
  if (parsed.print_config) return to_yaml(options_);
  if (command_ != Command::kTrain && checkpoint_.empty()) {
    throw ConfigError(
        fmt::format("--checkpoint FILE is missing: which weights "
                    "shall {} use?",
                    name_of(command_)));
  }
  job_line_ = job_line(environment);
  resume_after_restart(environment);
  if (config_.resume) take_over_settings(arguments);
  check_config(config_, options_);
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
}

std::string CommandLine::config_text() const {
  return job_line_ + recipe_line(recipe_name_) + to_yaml(options_);
}

// A launcher that restarts a training wants it to go on, not to begin anew. A
// run that another job has left in the folder is not what it goes on with.
void CommandLine::resume_after_restart(const Environment& environment) {
  const auto restarts = find_integer(environment, "TORCHELASTIC_RESTART_COUNT");
  if (restarts.value_or(0) == 0 || config_.fast_dev_run) return;
  const auto before =
      try_read_file(std::filesystem::path(config_.save_dir) / kConfigFile);
  if (!before || !before->starts_with(job_line_)) return;
  config_.resume = "latest";
  config_.overwrite = false;
}

// A run goes on with its own settings, also when they are not typed again.
// Those of the command line win, as they do over any file.
void CommandLine::take_over_settings(
    const std::vector<std::string>& arguments) {
  const std::string resume = *config_.resume;
  const std::string folder = config_.save_dir;
  const auto settings = saved_settings(resume, folder, recipe_name_);
  if (!settings) return;
  apply_yaml_text(options_, settings->text, settings->source);
  parse_command(options_, arguments);
  // Where the run is now, not where it was when it began.
  config_.save_dir = folder;
  config_.resume = resume;
  config_.overwrite = false;
  settings_source_ = settings->source;
}

}  // namespace lockstep

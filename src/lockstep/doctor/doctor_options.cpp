#include "lockstep/doctor/doctor_options.h"

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/worker_command.h"

namespace lockstep::doctor {
namespace {

constexpr const char* kHelp =
    "usage: lockstep doctor [--json] [--limit SECONDS] [train RECIPE "
    "flags...]\n"
    "\n"
    "Checks this machine before a job runs on it, and with the command of a\n"
    "training that training's data, memory, batch and speed. Changes nothing\n"
    "and leaves nothing behind. One line per check: ok, warning or FAILURE\n"
    "with the command that mends it.\n"
    "\n"
    "  --json              print JSON for programs\n"
    "  --limit SECONDS     time of each measurement (default: 120)\n"
    "  --nproc N, --master-port P and other options of lockstep run: as the\n"
    "                      job will have them\n"
    "\n"
    "exit code: 0 no failure, 2 settings, 3 files, 5 exchange, 6 hang,\n"
    "7 device, 9 limits: that of the first failure\n"
    "\n"
    "  lockstep doctor --nproc 2\n"
    "  lockstep doctor train tiny --nproc 2 --epochs 3\n";

double parse_limit(const std::string& text) {
  const auto seconds = base::parse_number(text);
  if (!seconds || !(*seconds > 0) || *seconds > 86400) {
    throw ConfigError("--limit '" + text +
                      "' is not a positive number of seconds, e.g. 120");
  }
  return *seconds;
}

}  // namespace

DoctorOptions parse_doctor_options(std::span<const std::string> arguments,
                                   const base::Environment& environment) {
  DoctorOptions options;
  std::vector<std::string> rest;
  size_t i = 0;
  // Behind "train" all words are those of the training.
  for (; i < arguments.size() && arguments[i] != "train"; ++i) {
    const std::string& word = arguments[i];
    if (word == "--json") {
      options.json = true;
    } else if (word == "--help" || word == "-h") {
      options.help = true;
    } else if (word.starts_with("--limit=")) {
      options.limit_seconds = parse_limit(word.substr(8));
    } else if (word == "--limit") {
      if (++i == arguments.size()) throw ConfigError("--limit needs a value");
      options.limit_seconds = parse_limit(arguments[i]);
    } else {
      rest.push_back(word);
    }
  }
  if (options.help) return options;
  if (i < arguments.size())
    rest.insert(rest.end(),
                arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                arguments.end());
  launch::WorkerCommand command = launch::split_worker_command("train", rest);
  const bool has_recipe = i < arguments.size();
  if (has_recipe && command.arguments.empty()) {
    throw ConfigError(
        "lockstep doctor train needs a recipe; lockstep recipes lists them");
  }
  if (!has_recipe && !command.arguments.empty()) {
    throw ConfigError("unknown word '" + command.arguments[0] +
                      "' of lockstep doctor; lockstep doctor --help explains");
  }
  std::vector<std::string> launching = command.launch_options;
  launching.emplace_back("lockstep-worker");
  launching.insert(launching.end(), command.arguments.begin(),
                   command.arguments.end());
  options.launch = launch::parse_run_options(launching, environment);
  options.recipe = std::move(command.arguments);
  return options;
}

std::string doctor_help() { return kHelp; }

}  // namespace lockstep::doctor

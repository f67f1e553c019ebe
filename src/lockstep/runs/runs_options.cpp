#include "lockstep/runs/runs_options.h"

#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep::runs {
namespace {

constexpr const char* kRunsHelp =
    R"(usage: lockstep runs [FOLDER] [--json]
       lockstep runs show RUN [--json]
       lockstep runs diff RUN RUN [--json]

A table of the runs below a folder: recipe, state, step, loss, best value, speed,
start and last sign of life. `show` prints one run: its state and why it ended,
what every rank does, its curves. `diff` compares two: settings that differ, the
first step at which the losses part, both curves.

  FOLDER       folder with runs; default: runs, or the current folder
  RUN          a run folder (--save_dir of lockstep train)
  --json       print JSON for programs
  -h, --help   print this text

States: running, finished, stopped (by Ctrl-C or a signal, can be resumed),
failed (an error, or killed), unknown (the folder has no run.json).
)";

void check(const RunsOptions& options) {
  const size_t count = options.folders.size();
  if (options.action == RunsAction::kList && count > 1) {
    throw ConfigError(
        "lockstep runs takes one folder; lockstep runs diff A B compares two "
        "runs");
  }
  if (options.action == RunsAction::kShow && count != 1) {
    throw ConfigError("name one run folder: lockstep runs show runs/NAME");
  }
  if (options.action == RunsAction::kDiff && count != 2) {
    throw ConfigError("name two run folders: lockstep runs diff runs/A runs/B");
  }
}

}  // namespace

RunsOptions parse_runs_options(std::span<const std::string> arguments) {
  RunsOptions options;
  if (!arguments.empty() && arguments[0] == "show") {
    options.action = RunsAction::kShow;
  } else if (!arguments.empty() && arguments[0] == "diff") {
    options.action = RunsAction::kDiff;
  }
  if (options.action != RunsAction::kList) arguments = arguments.subspan(1);
  for (const std::string& word : arguments) {
    if (word == "--help" || word == "-h") {
      options.help = true;
      return options;
    }
    if (word == "--json") {
      options.json = true;
    } else if (word.starts_with('-')) {
      throw ConfigError(
          fmt::format("unknown option {}; see lockstep runs --help", word));
    } else {
      options.folders.emplace_back(word);
    }
  }
  check(options);
  return options;
}

std::string runs_help() { return kRunsHelp; }

}  // namespace lockstep::runs

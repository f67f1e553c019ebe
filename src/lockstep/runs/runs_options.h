// The command line of `lockstep runs`.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lockstep::runs {

enum class RunsAction { kList, kShow, kDiff };

struct RunsOptions {
  bool help = false;  // Nothing else is checked.
  RunsAction action = RunsAction::kList;
  // The folder to list (empty: runs, or the current one), the run to show, or
  // the two to compare.
  std::vector<std::filesystem::path> folders = {};
  bool json = false;
};

// Throws ConfigError.
RunsOptions parse_runs_options(std::span<const std::string> arguments);

std::string runs_help();

}  // namespace lockstep::runs

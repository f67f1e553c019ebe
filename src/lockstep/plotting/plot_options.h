// The command line of `lockstep plot`.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::plotting {

struct PlotOptions {
  bool help = false;  // Nothing else is checked.
  std::vector<std::filesystem::path> runs = {};
  std::optional<std::filesystem::path> output = {};  // .png or .svg
  std::vector<std::string> metrics = {};             // None: chosen.
  std::string title = {};                            // Empty: the runs.
};

// Throws ConfigError.
PlotOptions parse_plot_options(std::span<const std::string> arguments);

std::string plot_help();

}  // namespace lockstep::plotting

// `lockstep plot`: draws runs, to a file and for the terminal.
#pragma once

#include <optional>
#include <string>

#include "lockstep/plot/terminal_graphics.h"
#include "lockstep/plotting/plot_options.h"

namespace lockstep::plotting {

struct PlotOutput {
  std::string text = {};     // For stdout; may hold a terminal's own codes.
  std::string warning = {};  // For stderr; empty: none.
};

// Writes the file, atomically. `terminal`: that of stdout; no value when it is
// not one, and then a file must be named. Throws ConfigError and IoError.
PlotOutput plot_runs(const PlotOptions& options,
                     const std::optional<plot::TerminalAbility>& terminal);

}  // namespace lockstep::plotting

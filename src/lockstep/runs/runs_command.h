// `lockstep runs`: tables and comparisons of runs, as text or JSON.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/plot/terminal_graphics.h"
#include "lockstep/runs/runs_options.h"

namespace lockstep::runs {

// `now`: unix time in seconds, for ages. Throws ConfigError for folders that
// do not exist or hold no run, and IoError.
std::string run_runs_command(const RunsOptions& options,
                             const plot::TerminalAbility& terminal,
                             int64_t now);

}  // namespace lockstep::runs

// Which metrics a comparison of runs shows.
#pragma once

#include <string>
#include <vector>

#include "lockstep/plot/curve_panels.h"
#include "lockstep/plotting/run_reader.h"

namespace lockstep::plotting {

// Those that all runs have, losses first, at most six; learning rate, epochs
// and the like only when they are asked for. `asked` replaces the choice: every
// name must be that of a metric of some run. Throws ConfigError when a name is
// unknown, or when the runs have nothing in common.
std::vector<std::string> choose_metrics(const std::vector<ReadRun>& runs,
                                        const std::vector<std::string>& asked);

// With its unit where it has one: "Speed (samples/s)".
std::string metric_title(const std::string& name);

// Speeds and memory are read from zero.
plot::AxisRule metric_axis(const std::string& name);

// Null when the run lacks it.
const plot::Series* find_series(const ReadRun& run, const std::string& name);

}  // namespace lockstep::plotting

// What a run folder holds for plots.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "lockstep/formats/image_grid.h"
#include "lockstep/plot/run_curves.h"

namespace lockstep::plotting {

struct ReadRun {
  std::filesystem::path folder = {};  // As it was named.
  plot::RunCurves curves = {};
  std::vector<plot::NamedSeries> metrics = {};  // All, as they appear.
};

// Throws ConfigError, with what to do, for a folder that does not exist or
// holds no metrics, and IoError.
ReadRun read_run(const std::filesystem::path& folder);

// The newest grid of images below the run's folder images/; of those of one
// step the last by name, which is that of the moving average. No value where
// there is none. Damaged files are skipped.
std::optional<formats::ReadGrid> newest_samples(
    const std::filesystem::path& folder);

}  // namespace lockstep::plotting

// The tables meta/tasks.parquet and meta/episodes/ of a LeRobot 3.x data set.
#pragma once

#include <filesystem>

#include "lockstep/datasets/conversion/child_pool.h"
#include "lockstep/datasets/conversion/lerobot_meta.h"

namespace lockstep::conversion {

// Fills in the tasks and episodes. The files are read in a child. Throws
// FormatError for damaged ones, ConfigError when there are none.
void read_lerobot_tables(const std::filesystem::path& folder,
                         const ChildLimits& limits, LerobotMeta& meta);

}  // namespace lockstep::conversion

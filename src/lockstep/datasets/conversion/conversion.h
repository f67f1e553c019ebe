// Converts the episodes of a source, and counts what became of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/workers.h"
#include "lockstep/datasets/conversion/source.h"

namespace lockstep::conversion {

struct ConversionConfig {
  std::filesystem::path output = {};
  // For sources without splits:
  std::string split = "train";
  double val_fraction = 0.1;  // Fraction of the episodes for "val".
  int64_t workers = 0;        // Processes; 0: one per core, at most 16.
  bool overwrite = false;
  ChildLimits limits = {};
};

struct ConversionCounts {
  size_t num_made = 0;
  size_t num_kept = 0;                     // Existed already.
  std::map<std::string, size_t> in_split;  // Made or kept.
  std::vector<Rejection> rejected;         // Sorted by name.
};

// Reads and writes in child processes: an episode that crashes or hangs while
// it is read is rejected, and the others are made. Throws IoError when
// something cannot be written, or when another process writes to the same
// folder.
ConversionCounts convert_episodes(EpisodeSource& source,
                                  const ConversionConfig& config,
                                  const base::ShowProgress& progress);

// Writes actions.csv beside every actions.parquet of a local layout; of the
// config only `workers`, `overwrite` and `limits` count.
ConversionCounts convert_in_place(const ConversionConfig& config,
                                  const base::ShowProgress& progress);

}  // namespace lockstep::conversion

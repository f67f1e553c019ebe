// Names of the files in a run folder (docs/reference/files.md).
#pragma once

#include <cstddef>

namespace lockstep::runs {

constexpr const char* kMetricsFile = "metrics.jsonl";
constexpr const char* kConfigFile = "config.yaml";
constexpr const char* kLockFile = ".lock";

// A larger one is not a settings file.
constexpr size_t kMostConfigBytes = size_t{1} << 20;

}  // namespace lockstep::runs

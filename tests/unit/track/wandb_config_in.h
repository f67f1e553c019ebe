// A Weights & Biases run of the tests and when it starts.
#pragma once

#include "lockstep/track/wandb_tracker.h"
#include "support/temp_dir.h"

namespace lockstep::testing {

constexpr double kWandbStart = 1.7e9;

inline track::WandbConfig wandb_config_in(const TempDir& folder,
                                          double start_time = kWandbStart) {
  track::WandbConfig config;
  config.folder = folder.path();
  config.start_time = start_time;
  return config;
}

}  // namespace lockstep::testing

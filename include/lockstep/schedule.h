// The learning rate as a pure function of the update's number: resuming needs
// no state.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/export.h"

namespace lockstep {

struct ScheduleConfig {
  std::string kind = "constant";  // constant, linear, cosine or step
  int64_t warmup_updates = 0;     // linear, up to the base learning rate
  int64_t total_updates = 0;      // linear and cosine end here, at min_lr
  double min_lr = 0;              // absolute
  int64_t step_updates = 0;       // step: multiply by gamma every so many
  double gamma = 0.1;
};

// Throws ConfigError for invalid settings.
LOCKSTEP_EXPORT void check_schedule(const ScheduleConfig& config);

// The learning rate of update k = 1, 2, ... With W = warmup_updates, s = k-1-W
// and S = total_updates-W:
//   k <= W   base * k / W
//   linear   base + (min - base) * s / S
//   cosine   min + (base - min) * 0.5 * (1 + cos(pi * s / S))
//   step     base * gamma ^ floor((k-1) / step_updates)
// Beyond total_updates linear and cosine stay at min_lr. Checks its settings.
LOCKSTEP_EXPORT double lr_at(const ScheduleConfig& config, double base_lr,
                             int64_t update);

}  // namespace lockstep

// Where the time of a training goes.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::track {

// Seconds summed over all steps, of one rank.
struct StepTimes {
  double data = 0;       // waiting for the loader
  double forward = 0;    // with the loss
  double backward = 0;   // without what `exchange` counts
  double exchange = 0;   // waiting for gradients of other ranks
  double optimizer = 0;  // clipping and averages of weights, too
  double other = 0;      // checkpoints, evaluation, logging
  int64_t steps = 0;
  // Steps in which a GPU waited for the host to launch its kernels.
  int64_t launch_bound_steps = 0;
};

// One row per part with milliseconds per step and percent, then the reading;
// several lines, without the last line's end.
std::string time_table(const StepTimes& times);

// What the numbers mean and what helps: "the loader is the bottleneck: 63% of
// the time waits for data; raise --workers". One line.
std::string time_reading(const StepTimes& times);

}  // namespace lockstep::track

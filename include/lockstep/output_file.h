// A file that a task makes and a command writes.
#pragma once

#include <string>

namespace lockstep {

struct OutputFile {
  // Relative, without "..": below the run folder or, for `lockstep sample`, its
  // folder of samples (sampled_seed_0). Sampling replaces "{step}" with the
  // optimizer step of the weights and "{weights}" with "" or their moving
  // average: "_ema", "_ema2",
  // ... A name without "{step}" is overwritten by every sampling. Samples of a
  // training also appear in trackers: ".png" as image, ".txt" as text.
  std::string name = {};
  std::string bytes = {};
  // The name in trackers, the same at every step; "{weights}" allowed.
  std::string title = "samples";
  // Prediction only: with a single input, `lockstep sample` also prints the
  // bytes, a text.
  bool is_shown = false;
};

}  // namespace lockstep

// A file that a task makes and a command writes.
#pragma once

#include <string>

namespace lockstep {

struct OutputFile {
  // Below the run folder: relative, without "..". "{step}" stands for a number,
  // "{weights}" for what made the samples: nothing, "_ema", "_ema2", ...
  std::string name = {};
  std::string bytes = {};
  // The name in trackers, the same at every step; "{weights}" allowed.
  std::string title = "samples";
  // A text that `lockstep sample` on one input prints, too.
  bool is_shown = false;
};

}  // namespace lockstep

// The numbers of a run that its plots show.
#pragma once

#include <string>
#include <vector>

#include "lockstep/plot/series.h"

namespace lockstep::plot {

struct NamedSeries {
  std::string name = {};
  Series series = {};
};

// Which values of a metric are better, where that is known.
enum class Direction { kUnknown, kLower, kHigher };

struct RunCurves {
  std::string title = {};
  Series train_loss = {};
  Series validation_loss = {};
  // A metric of validation other than the loss: the one that selects the best
  // model, where the run knows it.
  NamedSeries metric = {};
  Direction better = Direction::kUnknown;
  std::vector<NamedSeries> loss_terms = {};  // Training only.
  Series learning_rate = {};
  Series samples_per_second = {};
  Series gradient_norm = {};
  Series peak_memory_gib = {};
};

// All that have values.
std::vector<const Series*> all_series(const RunCurves& curves);

}  // namespace lockstep::plot

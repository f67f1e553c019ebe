// The curves of a run from its records.
#pragma once

#include <string>

#include "lockstep/plot/run_curves.h"
#include "lockstep/track/tracker.h"

namespace lockstep::track {

// The metric that selects the best model: "val/accuracy". Empty: not known;
// then the first of validation that is not its loss is taken.
struct PlottedMetric {
  std::string name = {};
  plot::Direction better = plot::Direction::kUnknown;
};

class CurveCollector {
 public:
  CurveCollector(std::string title, PlottedMetric metric);

  // True when it held something that is plotted.
  bool add(const Record& record);

  const plot::RunCurves& curves() const { return curves_; }

 private:
  plot::Series* series_of(const std::string& name);
  plot::Series* loss_term(const std::string& name);

  PlottedMetric metric_;
  plot::RunCurves curves_ = {};
};

}  // namespace lockstep::track

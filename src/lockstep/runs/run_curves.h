// All metrics of a run as curves, kept up to date while it goes on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/plot/run_curves.h"
#include "lockstep/runs/growing_file.h"
#include "lockstep/track/metric_line.h"

namespace lockstep::runs {

// Memory does not depend on the number of steps (plot/series.h).
class RunCurves {
 public:
  // The run's folder below the tree.
  explicit RunCurves(std::string_view run);

  // Reads what is new; true when there was anything.
  bool update(const FolderTree& tree);

  // In the order in which they appear; at most 200.
  const std::vector<plot::NamedSeries>& metrics() const { return metrics_; }
  const plot::Series* find(std::string_view name) const;

 private:
  void add_lines(std::string_view lines);
  void add(std::string_view name, double step, double value);

  GrowingFile file_;
  track::MetricLineParser parser_;
  std::vector<plot::NamedSeries> metrics_ = {};
  size_t next_ = 0;  // Records name their metrics in one order.
};

}  // namespace lockstep::runs

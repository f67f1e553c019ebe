// Several runs in one plot.
#pragma once

#include <string>
#include <vector>

#include "lockstep/plot/curve_panels.h"
#include "lockstep/plot/drawing.h"
#include "lockstep/plot/font.h"
#include "lockstep/plot/series.h"

namespace lockstep::plot {

// Runs that can be told apart: seven colours, solid and dashed.
constexpr size_t kMostRuns = 14;

struct ComparedMetric {
  std::string title = {};         // With its unit.
  std::vector<Series> runs = {};  // One per run; may be empty.
  AxisRule axis = AxisRule::kBySize;
};

struct Comparison {
  std::string title = {};
  std::vector<std::string> runs = {};  // Their names; at most kMostRuns.
  std::vector<ComparedMetric> metrics = {};
};

// One panel per metric, in two columns; the legend stands above them. 1200
// pixels wide, as high as needed.
Drawing draw_comparison(const Comparison& comparison,
                        const Font& font = Font());

}  // namespace lockstep::plot

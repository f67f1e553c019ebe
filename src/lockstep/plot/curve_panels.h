// Panels of a run: losses, a metric, single curves.
#pragma once

#include <string>
#include <vector>

#include "lockstep/plot/panel.h"
#include "lockstep/plot/run_curves.h"

namespace lockstep::plot {

// From 0, or the first step where that is far from it, to the last step.
Axis step_axis(const std::vector<const Series*>& all, int most_ticks);

enum class AxisRule {
  kFromZero,  // Linear; 0 is on it.
  kBySize,    // Logarithmic where positive values span two decades.
  kByRange,   // Linear; from the lowest to the highest value.
};

// For the finite values of all.
Axis value_axis(const std::vector<const Series*>& all, AxisRule rule,
                int most_ticks);

// Faint with a bold mean, or bold where there are few points.
void draw_noisy(Panel& panel, const Series& series, const Stroke& bold);

// With a dot at each point, where there are few.
void draw_dotted(Panel& panel, const Series& series, const Stroke& stroke);

// Noisy or, where there are few points, dotted.
void draw_curve(Panel& panel, const Series& series, const Stroke& stroke);

// The mean, or the values where there are few.
Series::Lines shown_lines(const Series& series);

// Where a panel is drawn; all must outlive the call.
struct Canvas {
  Drawing& drawing;
  const Font& font;
  // kBelow for panels side by side, so that their axes begin at one height.
  LegendPlace legend_place = LegendPlace::kBeside;
};

// Losses of training and validation, with the lowest of the latter. The scale
// is logarithmic when positive values span two decades; values of 0 (or as good
// as that) then stand at the lower edge, unless they are most.
void draw_loss_panel(const Canvas& canvas, const Frame& frame,
                     const RunCurves& curves, const Axis& steps);

// The metric with its best value.
void draw_metric_panel(const Canvas& canvas, const Frame& frame,
                       const RunCurves& curves, const Axis& steps);

void draw_terms_panel(const Canvas& canvas, const Frame& frame,
                      const RunCurves& curves, const Axis& steps);

struct SmallPanel {
  std::string title = {};
  const Series* series = nullptr;
  Color color = {};
  enum class Curve { kExact, kNoisy } curve = Curve::kNoisy;
  AxisRule rule = AxisRule::kFromZero;
};

// One curve and its last value.
void draw_small_panel(const Canvas& canvas, const Frame& frame,
                      const SmallPanel& small, const Axis& steps);

}  // namespace lockstep::plot

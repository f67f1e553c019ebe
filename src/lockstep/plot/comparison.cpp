#include "lockstep/plot/comparison.h"

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"
#include "lockstep/plot/plot.h"
#include "lockstep/plot/style.h"

namespace lockstep::plot {
namespace {

constexpr int kComparisonWidth = 1200;
constexpr double kComparisonPanel = 330;  // Height.
constexpr double kLegendHeight = 22;      // Per line.

Stroke stroke_of_run(size_t run) {
  return {.color = kCurveColors[run % kCurveColors.size()],
          .width = 2,
          .dash = run < kCurveColors.size() ? Dash::kSolid : Dash::kDashed};
}

std::vector<LegendEntry> run_legend(const std::vector<std::string>& runs) {
  std::vector<LegendEntry> legend;
  for (size_t i = 0; i < runs.size(); ++i) {
    const Stroke stroke = stroke_of_run(i);
    legend.push_back({.text = runs[i],
                      .color = stroke.color,
                      .mark = stroke.dash == Dash::kSolid
                                  ? LegendMark::kLine
                                  : LegendMark::kDashedLine});
  }
  return legend;
}

// The same for all panels.
Axis steps_of_all(const Comparison& comparison, int most_ticks) {
  std::vector<const Series*> all;
  for (const ComparedMetric& metric : comparison.metrics) {
    for (const Series& series : metric.runs) all.push_back(&series);
  }
  return step_axis(all, most_ticks);
}

void draw_metric(const Canvas& canvas, const Frame& frame,
                 const ComparedMetric& metric, const Axis& steps) {
  std::vector<const Series*> all;
  all.reserve(metric.runs.size());
  for (const Series& series : metric.runs) all.push_back(&series);
  Panel panel(canvas.drawing, canvas.font,
              {.frame = frame,
               .steps = steps,
               .values = value_axis(all, metric.axis, 8),
               .title = metric.title});
  bool is_empty = true;
  for (size_t i = 0; i < all.size(); ++i) {
    draw_curve(panel, *all[i], stroke_of_run(i));
    is_empty = is_empty && !all[i]->last();
  }
  if (is_empty) panel.note("no finite values");
}

}  // namespace

Drawing draw_comparison(const Comparison& comparison, const Font& font) {
  LOCKSTEP_CHECK(comparison.runs.size() <= kMostRuns,
                 "runs that can be told apart");
  Drawing drawing{.width = kComparisonWidth};
  const double width = kComparisonWidth - 2 * kMargin;
  draw_header(drawing, font, {.title = comparison.title});
  const int num_lines =
      draw_legend(drawing, font, run_legend(comparison.runs),
                  {.left = kMargin, .top = kHeaderHeight + 10, .width = width});
  const double top = kHeaderHeight + num_lines * kLegendHeight + 14;
  const size_t count = comparison.metrics.size();
  for (size_t i = 0; i < count; ++i) {
    // An odd last one has the whole width.
    const size_t row = i / 2;
    const bool is_wide = i % 2 == 0 && i + 1 == count;
    const double column_width = is_wide ? width : (width - kGap) / 2;
    draw_metric(
        {.drawing = drawing, .font = font},
        {.left = kMargin + (i % 2 == 0 ? 0 : column_width + kGap),
         .top = top + static_cast<double>(row) * (kComparisonPanel + kGap),
         .width = column_width,
         .height = kComparisonPanel},
        comparison.metrics[i], steps_of_all(comparison, is_wide ? 12 : 6));
  }
  const size_t num_rows = (count + 1) / 2;
  drawing.height = static_cast<int>(std::ceil(
      top + static_cast<double>(num_rows) * (kComparisonPanel + kGap) - kGap +
      kMargin));
  return drawing;
}

}  // namespace lockstep::plot

#include "lockstep/plot/curve_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "lockstep/plot/style.h"
#include "lockstep/plot/value_text.h"

namespace lockstep::plot {
namespace {

// Fewer points are drawn as they are: there is no noise to take away.
constexpr int64_t kFewestToSmooth = 30;
constexpr int64_t kMostMarkers = 60;
constexpr double kRatioForLogarithm = 100;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using ListOfSeries = std::vector<const Series*>;

Color faint(Color color, double opacity) {
  color.opacity = opacity;
  return color;
}

struct ValueRange {
  double low = kInfinity;
  double high = -kInfinity;
  double lowest_positive = kInfinity;
  int64_t num_finite = 0;
  int64_t num_positive = 0;
};

// Over the finite values of all; no value where there are none.
std::optional<ValueRange> range_of(const ListOfSeries& all) {
  ValueRange range;
  for (const Series* series : all) {
    if (!series->lowest()) continue;
    range.low = std::min(range.low, series->lowest()->y);
    range.high = std::max(range.high, series->highest()->y);
    range.lowest_positive = std::min(
        range.lowest_positive, series->lowest_positive().value_or(kInfinity));
    range.num_finite += series->num_values() - series->num_not_finite();
    range.num_positive += series->num_positive();
  }
  if (range.num_finite == 0) return std::nullopt;
  return range;
}

// A loss that underflows is 0 now and then, and rounding may take it a little
// below; a loss that really is negative can only be seen on a linear scale.
bool is_for_logarithm(const ValueRange& range) {
  return range.high >= kRatioForLogarithm * range.lowest_positive &&
         range.high >= -kRatioForLogarithm * range.low &&
         2 * range.num_positive >= range.num_finite;
}

void draw_ring(Panel& panel, Point at, const Color& color) {
  panel.dot(at, 7.5, color);
  panel.dot(at, 5, kWhite);
  panel.dot(at, 2.5, color);
}

std::string best_text(const char* word, Point best) {
  return fmt::format("{} {} at step {}", word, value_text(best.y),
                     grouped(best.x));
}

// Empty when all values are finite.
std::vector<LegendEntry> not_finite_entry(const ListOfSeries& all) {
  int64_t count = 0;
  for (const Series* series : all) count += series->num_not_finite();
  if (count == 0) return {};
  return {{.text = fmt::format("{} {} not finite", count,
                               count == 1 ? "value is" : "values are"),
           .color = kWarningColor,
           .mark = LegendMark::kNone}};
}

void append(std::vector<LegendEntry>& legend,
            const std::vector<LegendEntry>& more) {
  legend.insert(legend.end(), more.begin(), more.end());
}

std::vector<LegendEntry> loss_legend(const Series& train,
                                     const Series& validation) {
  std::vector<LegendEntry> legend;
  if (train.last()) {
    legend.push_back(
        {.text = "train " + value_text(train.last()->y), .color = kBlue});
  }
  if (validation.last()) {
    legend.push_back({.text = "validation " + value_text(validation.last()->y),
                      .color = kVermilion});
    legend.push_back({.text = best_text("lowest", *validation.lowest()),
                      .color = kVermilion,
                      .mark = LegendMark::kRing});
  }
  append(legend, not_finite_entry({&train, &validation}));
  return legend;
}

std::optional<Point> best_of(const RunCurves& curves) {
  switch (curves.better) {
    case Direction::kUnknown: return std::nullopt;
    case Direction::kLower: return curves.metric.series.lowest();
    case Direction::kHigher: return curves.metric.series.highest();
  }
  return std::nullopt;
}

std::string latest_text(const Series& series) {
  return series.last() ? "now " + value_text(series.last()->y) : "";
}

}  // namespace

Axis step_axis(const std::vector<const Series*>& all, int most_ticks) {
  double first = 0;
  double last = 0;
  bool is_first = true;
  for (const Series* series : all) {
    if (series->is_empty()) continue;
    first =
        is_first ? series->first_step() : std::min(first, series->first_step());
    last = std::max(last, series->last_step());
    is_first = false;
  }
  const bool begins_near_zero = last > first && first < 0.1 * last;
  return linear_axis({.low = begins_near_zero ? 0 : first,
                      .high = last,
                      .most_ticks = most_ticks,
                      .smallest_step = 1,
                      .margin = 0});
}

Axis value_axis(const std::vector<const Series*>& all, AxisRule rule,
                int most_ticks) {
  const auto range = range_of(all);
  if (!range) return linear_axis({});
  if (rule == AxisRule::kBySize && is_for_logarithm(*range)) {
    return logarithmic_axis({.low = range->lowest_positive,
                             .high = range->high,
                             .most_ticks = most_ticks});
  }
  const bool is_from_zero = rule == AxisRule::kFromZero;
  return linear_axis(
      {.low = is_from_zero ? std::min(range->low, 0.0) : range->low,
       .high = range->high});
}

void draw_noisy(Panel& panel, const Series& series, const Stroke& bold) {
  if (series.num_values() < kFewestToSmooth) {
    panel.lines(series.lines(), bold);
    return;
  }
  panel.lines(series.lines(), {.color = faint(bold.color, 0.3), .width = 1});
  panel.lines(series.smooth_lines(), bold);
}

void draw_dotted(Panel& panel, const Series& series, const Stroke& stroke) {
  panel.lines(series.lines(), stroke);
  if (series.num_values() > kMostMarkers) return;
  for (const auto& line : series.lines()) {
    for (const Point& point : line) panel.dot(point, 3.5, stroke.color);
  }
}

void draw_curve(Panel& panel, const Series& series, const Stroke& stroke) {
  if (series.num_values() < kFewestToSmooth) {
    draw_dotted(panel, series, stroke);
  } else {
    draw_noisy(panel, series, stroke);
  }
}

Series::Lines shown_lines(const Series& series) {
  return series.num_values() < kFewestToSmooth ? series.lines()
                                               : series.smooth_lines();
}

void draw_loss_panel(const Canvas& canvas, const Frame& frame,
                     const RunCurves& curves, const Axis& steps) {
  const Series& train = curves.train_loss;
  const Series& validation = curves.validation_loss;
  Panel panel(
      canvas.drawing, canvas.font,
      {.frame = frame,
       .steps = steps,
       .values = value_axis({&train, &validation}, AxisRule::kBySize, 12),
       .title = "Loss",
       .legend = loss_legend(train, validation),
       .legend_place = canvas.legend_place});
  draw_noisy(panel, train, {.color = kBlue, .width = 2.2});
  draw_dotted(panel, validation, {.color = kVermilion, .width = 2});
  if (validation.lowest()) draw_ring(panel, *validation.lowest(), kVermilion);
  if (!range_of({&train, &validation})) panel.note("no finite loss so far");
}

void draw_metric_panel(const Canvas& canvas, const Frame& frame,
                       const RunCurves& curves, const Axis& steps) {
  const Series& series = curves.metric.series;
  std::vector<LegendEntry> legend;
  if (series.last()) {
    legend.push_back({.text = "validation " + value_text(series.last()->y),
                      .color = kVermilion});
  }
  const auto best = best_of(curves);
  if (best) {
    legend.push_back({.text = best_text("best", *best),
                      .color = kVermilion,
                      .mark = LegendMark::kRing});
  }
  append(legend, not_finite_entry({&series}));
  Panel panel(canvas.drawing, canvas.font,
              {.frame = frame,
               .steps = steps,
               .values = value_axis({&series}, AxisRule::kByRange, 12),
               .title = curves.metric.name,
               .legend = legend,
               .legend_place = canvas.legend_place});
  draw_dotted(panel, series, {.color = kVermilion, .width = 2});
  if (best) draw_ring(panel, *best, kVermilion);
}

void draw_terms_panel(const Canvas& canvas, const Frame& frame,
                      const RunCurves& curves, const Axis& steps) {
  std::vector<const Series*> all;
  std::vector<LegendEntry> legend;
  for (const NamedSeries& term : curves.loss_terms) {
    const size_t color = all.size() % kCurveColors.size();
    all.push_back(&term.series);
    const std::string value =
        term.series.last() ? " " + value_text(term.series.last()->y) : "";
    legend.push_back({.text = term.name + value, .color = kCurveColors[color]});
  }
  append(legend, not_finite_entry(all));
  Panel panel(canvas.drawing, canvas.font,
              {.frame = frame,
               .steps = steps,
               .values = value_axis(all, AxisRule::kBySize, 12),
               .title = "Terms of the loss",
               .legend = legend,
               .legend_place = canvas.legend_place});
  for (size_t i = 0; i < all.size(); ++i) {
    draw_noisy(panel, *all[i],
               {.color = kCurveColors[i % kCurveColors.size()], .width = 2.2});
  }
}

void draw_small_panel(const Canvas& canvas, const Frame& frame,
                      const SmallPanel& small, const Axis& steps) {
  std::vector<LegendEntry> legend = not_finite_entry({small.series});
  if (legend.empty()) {
    legend.push_back({.text = latest_text(*small.series),
                      .color = kNoteColor,
                      .mark = LegendMark::kNone});
  }
  Panel panel(canvas.drawing, canvas.font,
              {.frame = frame,
               .steps = steps,
               .values = value_axis({small.series}, small.rule, 7),
               .title = small.title,
               .legend = legend});
  const Stroke bold{.color = small.color, .width = 2.2};
  if (small.curve == SmallPanel::Curve::kNoisy) {
    draw_noisy(panel, *small.series, bold);
  } else {
    panel.lines(small.series->lines(), bold);
  }
}

}  // namespace lockstep::plot

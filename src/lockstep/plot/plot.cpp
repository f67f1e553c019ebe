#include "lockstep/plot/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/base/utf8.h"
#include "lockstep/plot/panel.h"

namespace lockstep::plot {
namespace {

constexpr int kWidth = 1200;
constexpr int kHeight = 800;
constexpr double kMargin = 28;
constexpr double kHeaderHeight = 62;
constexpr double kGap = 30;          // Between panels.
constexpr double kSmallPanel = 236;  // The height of those below.

constexpr Color kTitleColor = {.red = 32, .green = 33, .blue = 36};
constexpr Color kNoteColor = {.red = 110, .green = 115, .blue = 122};
constexpr Color kWarning = {.red = 197, .green = 34, .blue = 31};
constexpr Color kBlue = {.red = 26, .green = 103, .blue = 210};
constexpr Color kOrange = {.red = 232, .green = 113, .blue = 10};
constexpr Color kGreen = {.red = 24, .green = 128, .blue = 84};
constexpr Color kPurple = {.red = 132, .green = 48, .blue = 206};
constexpr Color kTeal = {.red = 18, .green = 142, .blue = 158};
constexpr Color kWhite = {.red = 255, .green = 255, .blue = 255};

// Fewer points are drawn as they are: there is no noise to take away.
constexpr int64_t kFewestToSmooth = 30;
constexpr int64_t kMostMarkers = 60;
constexpr double kRatioForLogarithm = 100;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr int kMostStepTicks = 12;  // Side by side.

using ListOfSeries = std::initializer_list<const Series*>;

Color faint(Color color, double opacity) {
  color.opacity = opacity;
  return color;
}

// 12,345,678.
std::string grouped(double whole_number) {
  std::string text = fmt::format("{:.0f}", whole_number);
  const int first = text[0] == '-' ? 1 : 0;
  for (auto at = static_cast<int>(text.size()) - 3; at > first; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

// 1e-5 instead of 1e-05, as on the axes.
std::string value_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e4 && size < 1e9) return grouped(value);
  std::string text = fmt::format("{:.4g}", value);
  text = base::replace_all(text, "e-0", "e-");
  return base::replace_all(text, "e+", "e");
}

struct ValueRange {
  double low = kInfinity;
  double high = -kInfinity;
  double lowest_positive = kInfinity;
  int64_t num_finite = 0;
  int64_t num_positive = 0;
};

// Over the finite values of all; no value where there are none.
std::optional<ValueRange> range_of(ListOfSeries all) {
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

Axis step_axis(const RunCurves& curves, int most_ticks) {
  double first = 0;
  double last = 0;
  bool is_first = true;
  for (const Series* series :
       {&curves.train_loss, &curves.validation_loss, &curves.learning_rate,
        &curves.samples_per_second, &curves.gradient_norm}) {
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

// A loss that underflows is 0 now and then, and rounding may take it a little
// below; a loss that really is negative can only be seen on a linear scale.
bool is_for_logarithm(const ValueRange& range) {
  return range.high >= kRatioForLogarithm * range.lowest_positive &&
         range.high >= -kRatioForLogarithm * range.low &&
         2 * range.num_positive >= range.num_finite;
}

Axis values_by_size(const ValueRange& range, int most_ticks) {
  if (is_for_logarithm(range)) {
    return logarithmic_axis({.low = range.lowest_positive,
                             .high = range.high,
                             .most_ticks = most_ticks});
  }
  return linear_axis({.low = range.low, .high = range.high});
}

// Faint with a bold mean, or bold where there are few points.
void draw_noisy(Panel& panel, const Series& series, Color color) {
  if (series.num_values() < kFewestToSmooth) {
    panel.lines(series.lines(), {.color = color, .width = 2});
    return;
  }
  panel.lines(series.lines(), {.color = faint(color, 0.35), .width = 1});
  panel.lines(series.smooth_lines(), {.color = color, .width = 2.2});
}

void draw_validation(Panel& panel, const Series& series) {
  panel.lines(series.lines(), {.color = kOrange, .width = 2});
  if (series.num_values() > kMostMarkers) return;
  for (const auto& line : series.lines()) {
    for (const Point& point : line) panel.dot(point, 3.5, kOrange);
  }
}

void draw_lowest(Panel& panel, Point lowest) {
  panel.dot(lowest, 7.5, kOrange);
  panel.dot(lowest, 5, kWhite);
  panel.dot(lowest, 2.5, kOrange);
}

std::string not_finite_text(ListOfSeries all) {
  int64_t count = 0;
  for (const Series* series : all) count += series->num_not_finite();
  if (count == 0) return "";
  return fmt::format("{} {} not finite", count,
                     count == 1 ? "value is" : "values are");
}

void draw_losses(Drawing& drawing, const Frame& frame, const RunCurves& curves,
                 const Axis& steps) {
  const Series& train = curves.train_loss;
  const Series& validation = curves.validation_loss;
  const auto range = range_of({&train, &validation});
  Panel panel(drawing, frame, steps,
              range ? values_by_size(*range, 12) : linear_axis({}));
  panel.title("Loss");
  draw_noisy(panel, train, kBlue);
  draw_validation(panel, validation);
  std::vector<LegendEntry> legend;
  if (train.last()) {
    legend.push_back(
        {.text = "train " + value_text(train.last()->y), .color = kBlue});
  }
  if (validation.last()) {
    const Point lowest = *validation.lowest();
    draw_lowest(panel, lowest);
    legend.push_back({.text = "validation " + value_text(validation.last()->y),
                      .color = kOrange});
    legend.push_back(
        {.text = fmt::format("lowest {} at step {}", value_text(lowest.y),
                             grouped(lowest.x)),
         .color = kOrange,
         .mark = LegendMark::kRing});
  }
  if (const auto text = not_finite_text({&train, &validation}); !text.empty()) {
    legend.push_back(
        {.text = text, .color = kWarning, .mark = LegendMark::kNone});
  }
  if (!range) panel.note("no finite loss so far");
  panel.legend(legend);
}

struct SmallPanel {
  const char* title = "";
  const Series* series = nullptr;
  Color color = {};
  enum class Curve { kExact, kNoisy } curve = Curve::kNoisy;
  enum class Scale { kFromZero, kBySize } scale = Scale::kFromZero;
};

void draw_small(Drawing& drawing, const Frame& frame, const SmallPanel& small,
                const Axis& steps) {
  const auto range = range_of({small.series});
  Axis values = linear_axis({});
  if (range) {
    values = small.scale == SmallPanel::Scale::kBySize
                 ? values_by_size(*range, 7)
                 : linear_axis(
                       {.low = std::min(range->low, 0.0), .high = range->high});
  }
  Panel panel(drawing, frame, steps, values);
  panel.title(small.title);
  if (small.curve == SmallPanel::Curve::kNoisy) {
    draw_noisy(panel, *small.series, small.color);
  } else {
    panel.lines(small.series->lines(), {.color = small.color, .width = 2});
  }
  std::string text = not_finite_text({small.series});
  Color color = kWarning;
  if (text.empty() && small.series->last()) {
    text = "now " + value_text(small.series->last()->y);
    color = kNoteColor;
  }
  panel.legend({{.text = text, .color = color, .mark = LegendMark::kNone}});
}

std::string cut_to_width(const std::string& text, double size, double width) {
  const Font font;
  const std::string valid = base::as_utf8(text);
  std::string fitting;
  std::string_view rest = valid;
  while (!rest.empty()) {
    const size_t count = base::code_point_size(rest);
    const std::string longer = fitting + std::string(rest.substr(0, count));
    if (font.width(longer + "...", size) > width) return fitting + "...";
    fitting = longer;
    rest.remove_prefix(count);
  }
  return fitting;
}

void draw_header(Drawing& drawing, const RunCurves& curves, double last_step) {
  constexpr double kBaseline = 42;
  constexpr double kHeaderSize = 22;
  constexpr double kRoomForStep = 240;
  drawing.shapes.push_back(
      Label{.at = {kMargin, kBaseline},
            .text = cut_to_width(curves.title, kHeaderSize,
                                 kWidth - 2 * kMargin - kRoomForStep),
            .size = kHeaderSize,
            .color = kTitleColor});
  drawing.shapes.push_back(Label{.at = {kWidth - kMargin, kBaseline},
                                 .text = "step " + grouped(last_step),
                                 .size = 16,
                                 .color = kNoteColor,
                                 .align = Align::kRight});
}

double last_step_of(const RunCurves& curves) {
  return std::max(
      {curves.train_loss.last_step(), curves.validation_loss.last_step(),
       curves.learning_rate.last_step(), curves.samples_per_second.last_step(),
       curves.gradient_norm.last_step()});
}

}  // namespace

Drawing draw_run(const RunCurves& curves) {
  Drawing drawing{.width = kWidth, .height = kHeight};
  draw_header(drawing, curves, last_step_of(curves));
  std::vector<SmallPanel> below;
  for (const SmallPanel& small :
       {SmallPanel{.title = "Learning rate",
                   .series = &curves.learning_rate,
                   .color = kGreen,
                   .curve = SmallPanel::Curve::kExact},
        SmallPanel{.title = "Samples per second",
                   .series = &curves.samples_per_second,
                   .color = kPurple},
        SmallPanel{.title = "Gradient norm",
                   .series = &curves.gradient_norm,
                   .color = kTeal,
                   .scale = SmallPanel::Scale::kBySize}}) {
    if (!small.series->is_empty()) below.push_back(small);
  }
  const double height_below = below.empty() ? 0 : kSmallPanel + kGap;
  const double full_width = kWidth - 2 * kMargin;
  draw_losses(drawing,
              {.left = kMargin,
               .top = kHeaderHeight,
               .width = full_width,
               .height = kHeight - kMargin - kHeaderHeight - height_below},
              curves, step_axis(curves, kMostStepTicks));
  const auto count = static_cast<double>(below.size());
  const double width = (full_width - kGap * (count - 1)) / count;
  const Axis steps = step_axis(
      curves, kMostStepTicks / std::max(1, static_cast<int>(below.size())));
  for (size_t i = 0; i < below.size(); ++i) {
    draw_small(drawing,
               {.left = kMargin + static_cast<double>(i) * (width + kGap),
                .top = kHeight - kMargin - kSmallPanel,
                .width = width,
                .height = kSmallPanel},
               below[i], steps);
  }
  return drawing;
}

}  // namespace lockstep::plot

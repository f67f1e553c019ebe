#include "lockstep/plot/plot.h"

#include <algorithm>
#include <vector>

#include "lockstep/plot/curve_panels.h"
#include "lockstep/plot/style.h"
#include "lockstep/plot/value_text.h"

namespace lockstep::plot {
namespace {

constexpr int kWidth = 1200;
constexpr int kHeight = 800;
constexpr double kSmallPanel = 236;  // The height of those below.
constexpr int kMostStepTicks = 12;   // Side by side.

using DrawPanel = void (*)(const Canvas&, const Frame&, const RunCurves&,
                           const Axis&);

std::vector<DrawPanel> panels_above(const RunCurves& curves) {
  std::vector<DrawPanel> panels = {draw_loss_panel};
  if (!curves.metric.series.is_empty()) panels.push_back(draw_metric_panel);
  if (!curves.loss_terms.empty()) panels.push_back(draw_terms_panel);
  return panels;
}

std::vector<SmallPanel> panels_below(const RunCurves& curves) {
  std::vector<SmallPanel> panels;
  for (const SmallPanel& small :
       {SmallPanel{.title = "Learning rate",
                   .series = &curves.learning_rate,
                   .color = kGreen,
                   .curve = SmallPanel::Curve::kExact},
        SmallPanel{.title = "Speed (samples/s)",
                   .series = &curves.samples_per_second,
                   .color = kPurple},
        SmallPanel{.title = "Gradient norm",
                   .series = &curves.gradient_norm,
                   .color = kSky,
                   .rule = AxisRule::kBySize},
        SmallPanel{.title = "Peak memory (GiB)",
                   .series = &curves.peak_memory_gib,
                   .color = kOrange,
                   .curve = SmallPanel::Curve::kExact}}) {
    if (!small.series->is_empty()) panels.push_back(small);
  }
  return panels;
}

// The frame number `at` of `count` side by side.
Frame column(size_t at, size_t count, double top, double height) {
  const auto number = static_cast<double>(count);
  const double width = (kWidth - 2 * kMargin - kGap * (number - 1)) / number;
  return {.left = kMargin + static_cast<double>(at) * (width + kGap),
          .top = top,
          .width = width,
          .height = height};
}

Axis steps_of(const RunCurves& curves, size_t num_columns) {
  const auto columns = static_cast<int>(std::max<size_t>(num_columns, 1));
  return step_axis(all_series(curves), kMostStepTicks / columns);
}

}  // namespace

std::vector<const Series*> all_series(const RunCurves& curves) {
  std::vector<const Series*> all;
  const auto add = [&all](const Series& series) {
    if (!series.is_empty()) all.push_back(&series);
  };
  for (const Series* series :
       {&curves.train_loss, &curves.validation_loss, &curves.metric.series,
        &curves.learning_rate, &curves.samples_per_second,
        &curves.gradient_norm, &curves.peak_memory_gib}) {
    add(*series);
  }
  for (const NamedSeries& term : curves.loss_terms) add(term.series);
  return all;
}

void draw_header(Drawing& drawing, const Font& font, const Header& header) {
  constexpr double kBaseline = 42;
  constexpr double kHeaderSize = 22;
  constexpr double kHeaderNoteSize = 16;
  const double note_width = font.width(header.note, kHeaderNoteSize);
  const double room = drawing.width - 2 * kMargin - note_width - kGap;
  drawing.shapes.push_back(
      Label{.at = {kMargin, kBaseline},
            .text = cut_to_width(font, header.title, kHeaderSize, room),
            .size = kHeaderSize,
            .color = kInkColor});
  drawing.shapes.push_back(Label{.at = {drawing.width - kMargin, kBaseline},
                                 .text = header.note,
                                 .size = kHeaderNoteSize,
                                 .color = kNoteColor,
                                 .align = Align::kRight});
}

std::string step_note(const RunCurves& curves) {
  double last = 0;
  for (const Series* series : all_series(curves)) {
    last = std::max(last, series->last_step());
  }
  return "step " + grouped(last);
}

Drawing draw_run(const RunCurves& curves, const Font& font) {
  Drawing drawing{.width = kWidth, .height = kHeight};
  draw_header(drawing, font,
              {.title = curves.title, .note = step_note(curves)});
  const auto above = panels_above(curves);
  const auto below = panels_below(curves);
  const Canvas upper{.drawing = drawing,
                     .font = font,
                     .legend_place = above.size() > 1 ? LegendPlace::kBelow
                                                      : LegendPlace::kBeside};
  const Canvas lower{.drawing = drawing, .font = font};
  const double height_below = below.empty() ? 0 : kSmallPanel + kGap;
  for (size_t i = 0; i < above.size(); ++i) {
    above[i](upper,
             column(i, above.size(), kHeaderHeight,
                    kHeight - kMargin - kHeaderHeight - height_below),
             curves, steps_of(curves, above.size()));
  }
  for (size_t i = 0; i < below.size(); ++i) {
    draw_small_panel(
        lower,
        column(i, below.size(), kHeight - kMargin - kSmallPanel, kSmallPanel),
        below[i], steps_of(curves, below.size()));
  }
  return drawing;
}

}  // namespace lockstep::plot

#include "lockstep/plot/panel.h"

#include <cmath>
#include <utility>

namespace lockstep::plot {
namespace {

constexpr double kTitleHeight = 30;
constexpr double kTitleSize = 16;
constexpr double kTextSize = 13;
constexpr double kLegendSize = 14;
constexpr double kNumbersWidth = 56;   // Left of the values' axis.
constexpr double kNumbersHeight = 42;  // Below the steps' axis, with its name.

constexpr Color kInkColor = {.red = 32, .green = 33, .blue = 36};
constexpr Color kAxisColor = {.red = 95, .green = 99, .blue = 104};
constexpr Color kGrid = {.red = 232, .green = 234, .blue = 237};
constexpr Color kAxis = {.red = 154, .green = 160, .blue = 166};

// On whole pixels a line of one pixel is sharp.
Rectangle horizontal(double left, double y, double width, const Color& color) {
  return {.corner = {std::round(left), std::round(y)},
          .width = std::round(width),
          .height = 1,
          .color = color};
}

Rectangle vertical(double x, double top, double height, const Color& color) {
  return {.corner = {std::round(x), std::round(top)},
          .width = 1,
          .height = std::round(height),
          .color = color};
}

}  // namespace

Panel::Panel(Drawing& drawing, const Frame& frame, Axis steps, Axis values)
    : drawing_(drawing),
      frame_(frame),
      inside_{.left = frame.left + kNumbersWidth,
              .top = frame.top + kTitleHeight,
              .width = frame.width - kNumbersWidth,
              .height = frame.height - kTitleHeight - kNumbersHeight},
      steps_(std::move(steps)),
      values_(std::move(values)) {
  draw_grid();
}

Point Panel::place(Point at) const {
  return {inside_.left + inside_.width * steps_.position(at.x),
          inside_.top + inside_.height * (1 - values_.position(at.y))};
}

void Panel::draw_grid() {
  auto& shapes = drawing_.shapes;
  const double bottom = inside_.top + inside_.height;
  for (const Tick& tick : values_.ticks) {
    const double y = place({steps_.low, tick.value}).y;
    shapes.push_back(horizontal(inside_.left, y, inside_.width, kGrid));
    shapes.push_back(Label{.at = {inside_.left - 8, y + kTextSize * 0.36},
                           .text = tick.label,
                           .size = kTextSize,
                           .color = kAxisColor,
                           .align = Align::kRight});
  }
  for (const Tick& tick : steps_.ticks) {
    const double x = place({tick.value, values_.low}).x;
    shapes.push_back(vertical(x, inside_.top, inside_.height, kGrid));
    shapes.push_back(Label{.at = {x, bottom + 18},
                           .text = tick.label,
                           .size = kTextSize,
                           .color = kAxisColor,
                           .align = Align::kCenter});
  }
  shapes.push_back(horizontal(inside_.left, bottom, inside_.width, kAxis));
  shapes.push_back(Label{.at = {inside_.left + inside_.width / 2, bottom + 37},
                         .text = "step",
                         .size = kTextSize,
                         .color = kAxisColor,
                         .align = Align::kCenter});
}

void Panel::title(const std::string& text) {
  drawing_.shapes.push_back(Label{.at = {frame_.left, frame_.top + 16},
                                  .text = text,
                                  .size = kTitleSize,
                                  .color = kInkColor});
}

void Panel::legend(const std::vector<LegendEntry>& entries) {
  constexpr double kMarkWidth = 24;
  constexpr double kSpace = 8;
  const double baseline = frame_.top + 16;
  const double middle = baseline - kLegendSize * 0.36;
  double right = frame_.left + frame_.width;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const bool has_mark = entry->mark != LegendMark::kNone;
    drawing_.shapes.push_back(
        Label{.at = {right, baseline},
              .text = entry->text,
              .size = kLegendSize,
              .color = has_mark ? kInkColor : entry->color,
              .align = Align::kRight});
    right -= font_.width(entry->text, kLegendSize) + kSpace;
    if (entry->mark == LegendMark::kLine) {
      drawing_.shapes.push_back(
          Line{.points = {{right - kMarkWidth, middle}, {right, middle}},
               .color = entry->color,
               .width = 3});
      right -= kMarkWidth;
    } else if (entry->mark == LegendMark::kRing) {
      const Point center{right - 7, middle};
      drawing_.shapes.push_back(Disc{center, 6.5, entry->color});
      drawing_.shapes.push_back(Disc{center, 4.3, {255, 255, 255}});
      drawing_.shapes.push_back(Disc{center, 2.2, entry->color});
      right -= 14;
    }
    right -= 22;
  }
}

void Panel::note(const std::string& text) {
  drawing_.shapes.push_back(Label{.at = {inside_.left + inside_.width / 2,
                                         inside_.top + inside_.height / 2},
                                  .text = text,
                                  .size = kTitleSize,
                                  .color = kAxisColor,
                                  .align = Align::kCenter});
}

void Panel::lines(const std::vector<std::vector<Point>>& lines,
                  const Stroke& stroke) {
  for (const auto& points : lines) {
    if (points.size() == 1) {
      dot(points[0], 2 * stroke.width, stroke.color);
      continue;
    }
    Line line{.color = stroke.color, .width = stroke.width};
    for (const Point& point : points) line.points.push_back(place(point));
    drawing_.shapes.push_back(std::move(line));
  }
}

void Panel::dot(Point at, double radius, const Color& color) {
  drawing_.shapes.push_back(Disc{place(at), radius, color});
}

}  // namespace lockstep::plot

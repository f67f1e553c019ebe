#include "lockstep/plot/panel.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/plot/style.h"
#include "lockstep/plot/value_text.h"

namespace lockstep::plot {
namespace {

constexpr double kTitleHeight = 30;
constexpr double kPanelTitleSize = 16;
constexpr double kTextSize = 13;
constexpr double kNumbersWidth = 56;   // Left of the values' axis.
constexpr double kNumbersHeight = 42;  // Below the steps' axis, with its name.

constexpr double kLegendSize = 14;
constexpr double kLegendLine = 22;   // Height.
constexpr double kLegendSpace = 22;  // Between entries.
constexpr double kMarkSpace = 8;     // Between mark and text.

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

// The parts of a line that are drawn when it is dashed.
std::vector<std::vector<Point>> dashes(const std::vector<Point>& points) {
  constexpr double kDashLength = 9;
  constexpr double kDashGap = 6;
  std::vector<std::vector<Point>> parts = {{points.front()}};
  bool is_drawn = true;
  double left = kDashLength;  // Rest of the current dash or gap.
  for (size_t i = 1; i < points.size(); ++i) {
    Point from = points[i - 1];
    const Point to = points[i];
    double length = std::hypot(to.x - from.x, to.y - from.y);
    while (length > left) {
      const double part = left / length;
      from = {from.x + part * (to.x - from.x), from.y + part * (to.y - from.y)};
      length -= left;
      if (is_drawn) parts.back().push_back(from);
      is_drawn = !is_drawn;
      left = is_drawn ? kDashLength : kDashGap;
      if (is_drawn) parts.push_back({from});
    }
    left -= length;
    if (is_drawn) parts.back().push_back(to);
  }
  return parts;
}

double mark_width(LegendMark mark) {
  switch (mark) {
    case LegendMark::kLine:
    case LegendMark::kDashedLine: return 24 + kMarkSpace;
    case LegendMark::kRing: return 14 + kMarkSpace;
    case LegendMark::kNone: return 0;
  }
  return 0;
}

double legend_width(const Font& font, const LegendEntry& entry) {
  return mark_width(entry.mark) + font.width(entry.text, kLegendSize);
}

void draw_mark(Drawing& drawing, const LegendEntry& entry, Point at) {
  const double right = at.x + mark_width(entry.mark) - kMarkSpace;
  switch (entry.mark) {
    case LegendMark::kLine:
      drawing.shapes.push_back(Line{
          .points = {at, {right, at.y}}, .color = entry.color, .width = 3});
      break;
    case LegendMark::kDashedLine:
      for (auto& part : dashes({at, {right, at.y}})) {
        drawing.shapes.push_back(
            Line{.points = part, .color = entry.color, .width = 3});
      }
      break;
    case LegendMark::kRing: {
      const Point center{at.x + 7, at.y};
      drawing.shapes.push_back(Disc{center, 6.5, entry.color});
      drawing.shapes.push_back(Disc{center, 4.3, kWhite});
      drawing.shapes.push_back(Disc{center, 2.2, entry.color});
      break;
    }
    case LegendMark::kNone: break;
  }
}

}  // namespace

int draw_legend(Drawing& drawing, const Font& font,
                const std::vector<LegendEntry>& entries, const Frame& frame) {
  const double end = frame.left + frame.width;
  double x = frame.left;
  double baseline = frame.top;
  int num_lines = 1;
  for (const LegendEntry& entry : entries) {
    const double width = legend_width(font, entry);
    if (x > frame.left && x + width > end) {
      x = frame.left;
      baseline += kLegendLine;
      ++num_lines;
    }
    draw_mark(drawing, entry, {x, baseline - kLegendSize * 0.36});
    const double text_left = x + mark_width(entry.mark);
    const bool has_mark = entry.mark != LegendMark::kNone;
    drawing.shapes.push_back(
        Label{.at = {text_left, baseline},
              .text = cut_to_width(font, entry.text, kLegendSize,
                                   std::max(end - text_left, 0.0)),
              .size = kLegendSize,
              .color = has_mark ? kInkColor : entry.color});
    x += width + kLegendSpace;
  }
  return num_lines;
}

Panel::Panel(Drawing& drawing, const Font& font, PanelConfig config)
    : drawing_(drawing), config_(std::move(config)) {
  const Frame& frame = config_.frame;
  const double head = draw_head(font);
  inside_ = {.left = frame.left + kNumbersWidth,
             .top = frame.top + head,
             .width = frame.width - kNumbersWidth,
             .height = frame.height - head - kNumbersHeight};
  draw_grid();
}

double Panel::draw_head(const Font& font) {
  constexpr double kBaseline = 16;
  const Frame& frame = config_.frame;
  const std::string title =
      cut_to_width(font, config_.title, kPanelTitleSize, frame.width);
  drawing_.shapes.push_back(Label{.at = {frame.left, frame.top + kBaseline},
                                  .text = title,
                                  .size = kPanelTitleSize,
                                  .color = kInkColor});
  double width = 0;
  for (const LegendEntry& entry : config_.legend) {
    width += legend_width(font, entry) + (width > 0 ? kLegendSpace : 0);
  }
  if (width == 0) return kTitleHeight;
  const double room = frame.width - font.width(title, kPanelTitleSize);
  if (config_.legend_place == LegendPlace::kBeside &&
      width + kLegendSpace <= room) {
    draw_legend(drawing_, font, config_.legend,
                {.left = frame.left + frame.width - width,
                 .top = frame.top + kBaseline,
                 .width = width + 1});
    return kTitleHeight;
  }
  const int num_lines = draw_legend(drawing_, font, config_.legend,
                                    {.left = frame.left,
                                     .top = frame.top + kBaseline + kLegendLine,
                                     .width = frame.width});
  return kTitleHeight + num_lines * kLegendLine;
}

Point Panel::place(Point at) const {
  return {inside_.left + inside_.width * config_.steps.position(at.x),
          inside_.top + inside_.height * (1 - config_.values.position(at.y))};
}

void Panel::draw_grid() {
  auto& shapes = drawing_.shapes;
  const double bottom = inside_.top + inside_.height;
  for (const Tick& tick : config_.values.ticks) {
    const double y = place({config_.steps.low, tick.value}).y;
    shapes.push_back(horizontal(inside_.left, y, inside_.width, kGrid));
    shapes.push_back(Label{.at = {inside_.left - 8, y + kTextSize * 0.36},
                           .text = tick.label,
                           .size = kTextSize,
                           .color = kAxisColor,
                           .align = Align::kRight});
  }
  for (const Tick& tick : config_.steps.ticks) {
    const double x = place({tick.value, config_.values.low}).x;
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

void Panel::note(const std::string& text) {
  drawing_.shapes.push_back(Label{.at = {inside_.left + inside_.width / 2,
                                         inside_.top + inside_.height / 2},
                                  .text = text,
                                  .size = kPanelTitleSize,
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
    if (stroke.dash == Dash::kSolid) {
      drawing_.shapes.push_back(std::move(line));
      continue;
    }
    for (auto& part : dashes(line.points)) {
      drawing_.shapes.push_back(Line{.points = std::move(part),
                                     .color = stroke.color,
                                     .width = stroke.width});
    }
  }
}

void Panel::dot(Point at, double radius, const Color& color) {
  drawing_.shapes.push_back(Disc{place(at), radius, color});
}

}  // namespace lockstep::plot

// One pair of axes in a drawing, with the curves between them.
// Private to track/.
#pragma once

#include <string>
#include <vector>

#include "lockstep/plot/axis.h"
#include "lockstep/plot/drawing.h"
#include "lockstep/plot/font.h"

namespace lockstep::plot {

// With title, numbers and legend.
struct Frame {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

struct Stroke {
  Color color = {};
  double width = 1;
};

enum class LegendMark { kLine, kRing, kNone };

struct LegendEntry {
  std::string text = {};
  Color color = {};
  LegendMark mark = LegendMark::kLine;
};

// The constructor draws grid and numbers, the functions the rest. Coordinates
// are those of the axes. The drawing must outlive the panel.
class Panel {
 public:
  Panel(Drawing& drawing, const Frame& frame, Axis steps, Axis values);

  void title(const std::string& text);
  // At the right end of the title's line.
  void legend(const std::vector<LegendEntry>& entries);
  // In the middle, where there is nothing else.
  void note(const std::string& text);

  void lines(const std::vector<std::vector<Point>>& lines,
             const Stroke& stroke);
  void dot(Point at, double radius, const Color& color);

 private:
  void draw_grid();
  Point place(Point at) const;

  Drawing& drawing_;
  Frame frame_;
  Frame inside_;  // Between the axes.
  Axis steps_;
  Axis values_;
  Font font_ = {};
};

}  // namespace lockstep::plot

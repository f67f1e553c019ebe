// One pair of axes in a drawing, with the curves between them.
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

enum class Dash { kSolid, kDashed };

struct Stroke {
  Color color = {};
  double width = 1;
  Dash dash = Dash::kSolid;
};

enum class LegendMark { kLine, kDashedLine, kRing, kNone };

struct LegendEntry {
  std::string text = {};
  Color color = {};
  LegendMark mark = LegendMark::kLine;
};

// Draws entries from left to right, in as many lines as the width needs, the
// first one at this baseline. Returns the number of lines.
int draw_legend(Drawing& drawing, const Font& font,
                const std::vector<LegendEntry>& entries, const Frame& frame);

// kBeside: at the right end of the title's line, or below it when there is no
// room there.
enum class LegendPlace { kBeside, kBelow };

struct PanelConfig {
  Frame frame = {};
  Axis steps = {};
  Axis values = {};
  std::string title = {};  // With the unit of the values: "Speed (samples/s)".
  std::vector<LegendEntry> legend = {};
  LegendPlace legend_place = LegendPlace::kBeside;
};

// The constructor draws all but the curves. Coordinates are those of the axes.
// The drawing must outlive the panel.
class Panel {
 public:
  Panel(Drawing& drawing, const Font& font, PanelConfig config);

  // In the middle, where there is nothing else.
  void note(const std::string& text);

  void lines(const std::vector<std::vector<Point>>& lines,
             const Stroke& stroke);
  void dot(Point at, double radius, const Color& color);

 private:
  double draw_head(const Font& font);  // Returns its height.
  void draw_grid();
  Point place(Point at) const;

  Drawing& drawing_;
  PanelConfig config_;
  Frame inside_ = {};  // Between the axes.
};

}  // namespace lockstep::plot

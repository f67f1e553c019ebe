// The image of a run: its losses, metrics, learning rate, speed, gradients and
// memory.
#pragma once

#include <string>

#include "lockstep/plot/drawing.h"
#include "lockstep/plot/font.h"
#include "lockstep/plot/run_curves.h"

namespace lockstep::plot {

// 1200 x 800 pixels. Above losses, metric and terms of the loss, below the
// others; those without values have no panel. Noisy curves are faint, with a
// bold line of their mean.
Drawing draw_run(const RunCurves& curves, const Font& font = Font());

// Title on the left, a short text on the right.
struct Header {
  std::string title = {};
  std::string note = {};
};
void draw_header(Drawing& drawing, const Font& font, const Header& header);

// "step 1,900".
std::string step_note(const RunCurves& curves);

}  // namespace lockstep::plot

// A run in one image: what its model draws, beside how it learned.
#pragma once

#include <string>
#include <vector>

#include "lockstep/formats/image_grid.h"
#include "lockstep/plot/drawing.h"
#include "lockstep/plot/font.h"
#include "lockstep/plot/run_curves.h"

namespace lockstep::plot {

// Classes side by side, their names above; at most this many of each are shown.
constexpr int kMostShownClasses = 10;
constexpr int kMostShownCopies = 5;

// `grid` has one class per row. Its images are enlarged by a whole factor, to
// about 96 pixels; larger ones are made smaller. The losses stand on the right.
Drawing draw_sample_card(const RunCurves& curves, const formats::ReadGrid& grid,
                         const Font& font = Font());

}  // namespace lockstep::plot

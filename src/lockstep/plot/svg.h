// A drawing as an SVG file. Private to track/.
#pragma once

#include <string>

#include "lockstep/plot/drawing.h"

namespace lockstep::plot {

// Texts stay texts, in a sans-serif font of the viewer.
std::string to_svg(const Drawing& drawing);

}  // namespace lockstep::plot

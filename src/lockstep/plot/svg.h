// A drawing as an SVG file.
#pragma once

#include <string>

#include "lockstep/plot/drawing.h"

namespace lockstep::plot {

// Texts stay texts, in a sans-serif font of the viewer; images are inside.
std::string to_svg(const Drawing& drawing);

}  // namespace lockstep::plot

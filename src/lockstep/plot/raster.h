// A drawing as pixels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/plot/drawing.h"
#include "lockstep/plot/font.h"

namespace lockstep::plot {

// With smooth edges: red, green and blue of each pixel, row by row. What lies
// outside of the drawing is cut off.
std::vector<uint8_t> to_pixels(const Drawing& drawing,
                               const Font& font = Font());

// The bytes of a PNG file.
std::string to_png(const Drawing& drawing, const Font& font = Font());

}  // namespace lockstep::plot

// Samples and curves in letters, for terminals that show no images.
#pragma once

#include <string>

#include "lockstep/formats/image_grid.h"
#include "lockstep/plot/series.h"
#include "lockstep/plot/terminal_graphics.h"

namespace lockstep::plot {

// The first image of each row of the grid below its name, as many side by side
// as fit. A letter is two pixels: half blocks in colour, else shades of ASCII.
// Large images are made smaller.
std::string text_samples(const formats::ReadGrid& grid,
                         const TerminalAbility& terminal);

// A curve of dots (braille, else ASCII) with its range; empty without values.
std::string text_curve(const std::string& title, const Series& series,
                       const TerminalAbility& terminal);

}  // namespace lockstep::plot

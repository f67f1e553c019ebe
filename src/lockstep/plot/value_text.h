// Numbers and titles as plots write them.
#pragma once

#include <string>

#include "lockstep/plot/font.h"

namespace lockstep::plot {

// 12,345,678.
std::string grouped(double whole_number);

// Four digits: "0.03125", "12,345", "1e-5".
std::string value_text(double value);

// The text, or as much of it as fits into the width, with "..." behind.
std::string cut_to_width(const Font& font, const std::string& text, double size,
                         double width);

}  // namespace lockstep::plot

// A TrueType font made for tests.
#pragma once

#include <string>

namespace lockstep::testing {

// It has one letter, a box as wide and high as the font's size.
std::string box_font(char32_t letter);

}  // namespace lockstep::testing

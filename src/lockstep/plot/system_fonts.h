// Fonts that are installed on this machine, by fontconfig.
#pragma once

#include <filesystem>
#include <optional>

namespace lockstep::plot {

struct FontFile {
  std::filesystem::path path = {};
  int index = 0;  // Within a collection (.ttc, .otc).
};

// A sans-serif font with outlines that has the character. No value where there
// is none, or no libfontconfig.so.1: it is loaded when first needed, so that
// machines without it lack those letters and nothing else. Thread-safe.
std::optional<FontFile> find_system_font(char32_t character);

}  // namespace lockstep::plot

// DejaVu Sans, which is part of the library: no machine needs fonts installed.
// Private to track/.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "lockstep/plot/drawing.h"

namespace lockstep::plot {

// How much of each pixel a letter covers, 0 to 255, row by row.
struct Glyph {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
  std::vector<uint8_t> coverage = {};
};

// Texts are UTF-8; bytes that are not, and characters that the font lacks, are
// drawn as its replacement. Safe to use from several threads.
class Font {
 public:
  Font();
  ~Font();
  Font(const Font&) = delete;
  Font& operator=(const Font&) = delete;

  // In pixels, at this letter size.
  double width(std::string_view text, double size) const;

  // The letters of a text that begins at `at`.
  std::vector<Glyph> glyphs(std::string_view text, double size, Point at) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace lockstep::plot

// Letters for plots: DejaVu Sans, which is part of the library, and for what it
// lacks the fonts of the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/plot/drawing.h"
#include "lockstep/plot/system_fonts.h"

namespace lockstep::plot {

// How much of each pixel a letter covers, 0 to 255, row by row.
struct Glyph {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
  std::vector<uint8_t> coverage = {};
};

// A font that has a character.
using FontFinder = std::function<std::optional<FontFile>(char32_t)>;

// Texts are UTF-8; bytes that are not are drawn as its replacement, characters
// that no font has as question marks. Other fonts are looked up and read when a
// text first needs them. Safe to use from several threads.
class Font {
 public:
  explicit Font(FontFinder finder = find_system_font);
  ~Font();
  Font(const Font&) = delete;
  Font& operator=(const Font&) = delete;

  // In pixels, at this letter size.
  double width(std::string_view text, double size) const;

  // The letters of a text that begins at `at`.
  std::vector<Glyph> glyphs(std::string_view text, double size, Point at) const;

  // The characters of a text that no font has, each once.
  std::string missing(std::string_view text) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::plot

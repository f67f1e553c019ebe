// PNG files: writing pixels, and what the header says. Reading pixels:
// data/image.h.
//
// Free functions without state: safe to call from several threads at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

enum class PngContent {
  kPhoto,
  kDrawing,  // Areas of one color: written four times as fast.
};

// 8 bits per channel, rows from top to bottom, channels interleaved.
struct PngPixels {
  int width = 0;
  int height = 0;
  int channels = 3;  // 1: grey; 3: red, green, blue.
  std::span<const uint8_t> pixels = {};
  PngContent content = PngContent::kPhoto;
  // Red, green, blue of each color, at most 256: the pixels, of 1 channel, are
  // then their numbers. Empty: none.
  std::span<const uint8_t> palette = {};
};

// The bytes of a PNG file. Throws ConfigError unless sides, channels, number of
// pixels and palette fit together.
std::string encode_png(const PngPixels& image);

struct PngHeader {
  int width = 0;
  int height = 0;
  int channels = 0;  // Of a image with a palette: 3.
};

// Throws FormatError when the bytes do not begin as a PNG file does.
PngHeader read_png_header(std::string_view bytes);

}  // namespace lockstep

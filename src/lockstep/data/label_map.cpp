#include "lockstep/data/label_map.h"

#include <fmt/format.h>

#include "lockstep/base/files.h"
#include "lockstep/data/image_codecs.h"
#include "lockstep/error.h"
#include "lockstep/formats/png.h"

namespace lockstep::data {

Image decode_label_map(std::string_view bytes) {
  if (!bytes.starts_with("\x89PNG\r\n\x1a\n")) {
    throw FormatError(
        "not a PNG file; a map of labels or distances is one with a palette, "
        "8-bit grey, or 8-bit RGB with three equal channels");
  }
  return decode_label_png(bytes);
}

Image read_label_map(const std::filesystem::path& path) {
  const std::string bytes = base::read_file(path);
  try {
    return decode_label_map(bytes);
  } catch (const FormatError& error) {
    throw FormatError(
        fmt::format("label map '{}': {}", path.string(), error.what()));
  }
}

// Bits 0, 3 and 6 of a number are the highest bits of red, those behind them
// the highest of green and blue; the next three bits of the number follow.
std::vector<uint8_t> voc_palette() {
  std::vector<uint8_t> palette(3 * 256);
  for (size_t number = 0; number < 256; ++number) {
    for (size_t bit = 0; bit < 8; ++bit) {
      const bool is_set = (number >> bit & 1) != 0;
      if (is_set) palette[3 * number + bit % 3] |= uint8_t(0x80 >> bit / 3);
    }
  }
  return palette;
}

std::string encode_palette_png(const Image& labels,
                               std::span<const uint8_t> palette) {
  return encode_png(formats::PngPixels{.width = labels.width,
                                       .height = labels.height,
                                       .channels = labels.channels,
                                       .pixels = labels.pixels,
                                       .content = formats::PngContent::kDrawing,
                                       .palette = palette});
}

}  // namespace lockstep::data

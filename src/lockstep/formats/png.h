// PNG files in memory: writing and reading pixels, and reading the header.
// Images: data/image.h.
//
// The free functions have no state: safe to call from several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::formats {

enum class PngContent {
  kPhoto,
  kDrawing,  // Areas of one color: written four times as fast.
};

// A text inside the file. The keyword is 1 to 79 letters of ASCII, the text
// UTF-8 without zeros.
struct PngText {
  std::string keyword = {};
  std::string text = {};
};

// 8 bits per channel, rows from top to bottom, channels interleaved.
struct PngPixels {
  int width = 0;
  int height = 0;
  int channels = 3;  // 1: grey; 3: red, green, blue.
  std::span<const uint8_t> pixels = {};
  PngContent content = PngContent::kPhoto;
  // Red, green and blue of up to 256 colors; the pixels, of 1 channel, are then
  // indices into it. Empty: no palette.
  std::span<const uint8_t> palette = {};
  PngText text = {};  // Without a keyword: none.
};

// The bytes of a PNG file. Throws ConfigError unless sides, channels, number of
// pixels and palette fit together.
std::string encode_png(const PngPixels& image);

struct PngHeader {
  int width = 0;
  int height = 0;
  int channels = 0;  // 3 for an image with a palette.
};

// Throws FormatError when the bytes do not begin as a PNG file does.
PngHeader read_png_header(std::string_view bytes);

enum class PngConversion {
  kGreyOrRgb,  // 8 bits per channel; palettes become RGB, alpha is dropped.
  kIndices,    // One byte per channel; palette indices stay as they are.
};

// Decodes one file in two steps, so that the caller can check the size before
// it allocates the pixels. Call convert() once, then read(). Not thread-safe.
// All functions throw FormatError for a damaged file.
class PngReader {
 public:
  // Reads the header. The bytes must outlive the reader.
  explicit PngReader(std::string_view bytes);
  ~PngReader();
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  uint32_t width() const;
  uint32_t height() const;
  bool has_palette() const;
  int color_type() const;  // The file's own number: 0 grey, 2 RGB, 3 palette.
  int bit_depth() const;   // Per channel.
  // The text with this keyword that stands before the pixels; empty: none.
  std::string text(std::string_view keyword) const;

  void convert(PngConversion conversion);
  int channels() const;  // After convert(): of the pixels that read() gives.

  // width x height x channels bytes, rows from top to bottom.
  void read(std::span<uint8_t> pixels);

 private:
  class Decoder;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace lockstep::formats

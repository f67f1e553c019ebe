// Images in memory, and reading and writing them as files.
//
// Free functions without state: safe to call from several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

// 8 bits per channel, rows from top to bottom, channels interleaved.
struct Image {
  int width = 0;
  int height = 0;
  int channels = 3;  // 1: grey; 3: red, green, blue.
  std::vector<uint8_t> pixels = {};

  size_t row_bytes() const { return size_t(width) * size_t(channels); }
  const uint8_t* row(int y) const {
    return pixels.data() + size_t(y) * row_bytes();
  }
  uint8_t* row(int y) { return pixels.data() + size_t(y) * row_bytes(); }
};

struct ImageSize {
  int width = 0;
  int height = 0;
};

// An image with pixels of any value. Throws ConfigError when a side is below 1
// or channels is neither 1 nor 3.
Image make_image(int width, int height, int channels);

struct ImageRequest {
  int channels = 3;  // 3, or 1 for grey by the usual weights of brightness.
  // Lets a JPEG be decoded at 1/2, 1/4 or 1/8 of its size: the smallest with a
  // short side, rounded down, of at least this. Faster than decoding all and
  // shrinking, and not quite the same pixels. No value: full size.
  std::optional<int> at_least_short_side = std::nullopt;
};

// A JPEG or PNG image, known by its first bytes. The pixels are those of
// Pillow's Image.open().convert("RGB"): transparency is dropped, a rotation in
// EXIF data is not applied, 16 bits become their upper 8. (16-bit grey, which
// Pillow clips at 255, becomes its upper 8 bits too.)
//
// Throws FormatError for anything but a complete image: other bytes, a
// truncated file, damaged data, more than 2^28 pixels; and for an image that
// takes more memory to decode than 64 MiB and 100 times the bytes of its file.
Image decode_image(std::string_view bytes, ImageRequest request = {});

// The size alone, from the header. Throws FormatError.
ImageSize size_of_image(std::string_view bytes);

// Also throws IoError when the file cannot be read. Errors name the path.
Image read_image(const std::filesystem::path& path, ImageRequest request = {});

std::string encode_png(const Image& image);

// Leaves the old file or the new one, never half. Throws IoError.
void write_png(const std::filesystem::path& path, const Image& image);

}  // namespace lockstep::data

#include "lockstep/data/image.h"

#include <fmt/format.h>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/image_codecs.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kMostPixels = uint64_t{1} << 28;

void check_shape(const Image& image) {
  if (image.width >= 1 && image.height >= 1 &&
      (image.channels == 1 || image.channels == 3)) {
    return;
  }
  throw ConfigError(fmt::format(
      "an image of {}x{} pixels with {} channels: sides must be at least 1, "
      "channels 1 or 3",
      image.width, image.height, image.channels));
}

Image grey_to_rgb(const Image& grey) {
  Image rgb = make_image(grey.width, grey.height, 3);
  uint8_t* out = rgb.pixels.data();
  for (const uint8_t value : grey.pixels) {
    out[0] = out[1] = out[2] = value;
    out += 3;
  }
  return rgb;
}

// ITU-R 601 weights in 16-bit fixed point, rounded: Pillow's convert("L").
Image rgb_to_grey(const Image& rgb) {
  Image grey = make_image(rgb.width, rgb.height, 1);
  const uint8_t* in = rgb.pixels.data();
  for (uint8_t& value : grey.pixels) {
    value = uint8_t(
        (in[0] * 19595u + in[1] * 38470u + in[2] * 7471u + 0x8000u) >> 16);
    in += 3;
  }
  return grey;
}

std::string first_bytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes.substr(0, 8)) {
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", uint8_t(byte));
  }
  return text;
}

enum class FileKind { kJpeg, kPng };

FileKind kind_of(std::string_view bytes) {
  if (bytes.empty()) throw FormatError("an image file of 0 bytes");
  if (bytes.starts_with("\xff\xd8\xff")) return FileKind::kJpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return FileKind::kPng;
  throw FormatError(
      fmt::format("neither a JPEG nor a PNG image: it starts with the bytes {}",
                  first_bytes(bytes)));
}

}  // namespace

Image make_image(int width, int height, int channels) {
  Image image{.width = width, .height = height, .channels = channels};
  check_shape(image);
  image.pixels.resize(image.row_bytes() * size_t(height));
  return image;
}

void check_image(const Image& image) {
  check_shape(image);
  const size_t num_bytes = image.row_bytes() * size_t(image.height);
  if (image.pixels.size() == num_bytes) return;
  throw ConfigError(fmt::format(
      "an image of {}x{} pixels with {} channels needs {} bytes of pixels, not "
      "{}",
      image.width, image.height, image.channels, num_bytes,
      image.pixels.size()));
}

// The decoder rounds up.
int decoded_fraction(const Image& image, ImageSize full) {
  for (const int fraction : {1, 2, 4, 8}) {
    if ((full.width + fraction - 1) / fraction == image.width &&
        (full.height + fraction - 1) / fraction == image.height) {
      return fraction;
    }
  }
  throw ConfigError(fmt::format(
      "an image of {}x{} pixels is not 1, 1/2, 1/4 or 1/8 of one of {}x{}",
      image.width, image.height, full.width, full.height));
}

void check_image_size(uint64_t width, uint64_t height, uint64_t num_bytes,
                      uint64_t most_pixels_per_byte) {
  const uint64_t num_pixels = width * height;
  if (num_pixels == 0 || num_pixels > kMostPixels) {
    throw FormatError(fmt::format(
        "an image of {}x{} pixels: at least 1 and at most {} are read", width,
        height, kMostPixels));
  }
  if (num_pixels > num_bytes * most_pixels_per_byte) {
    throw FormatError(
        fmt::format("{} bytes cannot hold the {}x{} pixels that the header "
                    "claims: damaged, or cut off",
                    num_bytes, width, height));
  }
}

void check_decoded_size(ImageSize size, uint64_t memory_bytes,
                        uint64_t file_bytes) {
  constexpr uint64_t kAlways = uint64_t{64} << 20;
  constexpr uint64_t kMostTimes = 100;
  if (memory_bytes <= kAlways + kMostTimes * file_bytes) return;
  throw FormatError(fmt::format(
      "an image of {}x{} pixels takes {} of memory to decode, more than 64 MiB "
      "and {} times the {} bytes of its file: scale it down or leave it out",
      size.width, size.height, base::bytes_text(int64_t(memory_bytes)),
      kMostTimes, file_bytes));
}

Image decode_image(std::string_view bytes, ImageRequest request) {
  if (request.channels != 1 && request.channels != 3) {
    throw ConfigError(fmt::format(
        "an image with {} channels was asked for: 1 (grey) or 3 (RGB)",
        request.channels));
  }
  Image image = kind_of(bytes) == FileKind::kJpeg
                    ? decode_jpeg(bytes, request.at_least_short_side)
                    : decode_png(bytes);
  if (image.channels == request.channels) return image;
  return image.channels == 1 ? grey_to_rgb(image) : rgb_to_grey(image);
}

ImageSize size_of_image(std::string_view bytes) {
  return kind_of(bytes) == FileKind::kJpeg ? size_of_jpeg(bytes)
                                           : size_of_png(bytes);
}

Image read_image(const std::filesystem::path& path, ImageRequest request) {
  const std::string bytes = base::read_file(path);
  try {
    return decode_image(bytes, request);
  } catch (const FormatError& error) {
    throw FormatError(
        fmt::format("image '{}': {}", path.string(), error.what()));
  }
}

void write_png(const std::filesystem::path& path, const Image& image) {
  base::write_file_atomically(path, encode_png(image));
}

}  // namespace lockstep::data

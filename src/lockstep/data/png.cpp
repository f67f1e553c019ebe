// Images and label maps from PNG files.
#include "lockstep/formats/png.h"

#include <fmt/format.h>

#include "lockstep/data/image_codecs.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr const char* kExpectedLabels =
    "a map of labels or distances is a PNG file with a palette, 8-bit grey, or "
    "8-bit RGB with three equal channels";

// Deflate makes at most 1032 bytes of one, and a byte holds 8 pixels at most.
constexpr uint64_t kMostPngPixelsPerByte = 1032 * 8;

void check_holds_labels(const formats::PngReader& reader) {
  constexpr int kGrey = 0;
  constexpr int kRgb = 2;
  const int type = reader.color_type();
  const int depth = reader.bit_depth();
  const bool is_plain = type == kGrey || type == kRgb;
  if (reader.has_palette() || (is_plain && depth == 8)) return;
  throw FormatError(
      fmt::format("a PNG file of color type {} with {} bits per channel; {}",
                  type, depth, kExpectedLabels));
}

Image first_of_equal_channels(const Image& rgb) {
  Image labels = make_image(rgb.width, rgb.height, 1);
  const uint8_t* from = rgb.pixels.data();
  for (uint8_t& label : labels.pixels) {
    if (from[0] != from[1] || from[0] != from[2]) {
      throw FormatError(
          fmt::format("an RGB image with colours, such as ({}, {}, {}); {}",
                      from[0], from[1], from[2], kExpectedLabels));
    }
    label = from[0];
    from += 3;
  }
  return labels;
}

void check_png_size(const formats::PngReader& reader, std::string_view bytes) {
  check_image_size(reader.width(), reader.height(), bytes.size(),
                   kMostPngPixelsPerByte);
}

Image read_image(formats::PngReader& reader, formats::PngConversion conversion,
                 std::string_view bytes) {
  reader.convert(conversion);
  const ImageSize size{.width = int(reader.width()),
                       .height = int(reader.height())};
  check_decoded_size(
      size,
      uint64_t(reader.width()) * reader.height() * uint64_t(reader.channels()),
      bytes.size());
  Image image = make_image(size.width, size.height, reader.channels());
  reader.read(image.pixels);
  return image;
}

}  // namespace

ImageSize size_of_png(std::string_view bytes) {
  const formats::PngReader reader(bytes);
  check_png_size(reader, bytes);
  return {.width = int(reader.width()), .height = int(reader.height())};
}

Image decode_png(std::string_view bytes) {
  formats::PngReader reader(bytes);
  check_png_size(reader, bytes);
  return read_image(reader, formats::PngConversion::kGreyOrRgb, bytes);
}

Image decode_label_png(std::string_view bytes) {
  formats::PngReader reader(bytes);
  check_png_size(reader, bytes);
  check_holds_labels(reader);
  const Image image =
      read_image(reader, formats::PngConversion::kIndices, bytes);
  return image.channels == 1 ? image : first_of_equal_channels(image);
}

std::string encode_png(const Image& image) {
  check_image(image);
  return encode_png(formats::PngPixels{.width = image.width,
                                       .height = image.height,
                                       .channels = image.channels,
                                       .pixels = image.pixels});
}

}  // namespace lockstep::data

// PNG by libpng; the encoder is in formats/.
//
// As in jpeg.cpp: libpng leaves an error by longjmp, so no frame between setjmp
// and that jump holds an object with a destructor.
#include "lockstep/formats/png.h"

#include <fmt/format.h>
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstring>

#include "lockstep/data/image_codecs.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

struct Escape {
  std::jmp_buf place;
  std::array<char, 128> message;
};

[[noreturn]] void escape_with_message(png_structp png, png_const_charp text) {
  auto* escape = static_cast<Escape*>(png_get_error_ptr(png));
  std::strncpy(escape->message.data(), text, escape->message.size() - 1);
  std::longjmp(escape->place, 1);
}

// Of parts that do not touch the pixels. Without this libpng prints them.
void ignore_warning(png_structp, png_const_charp) {}

void take_bytes(png_structp png, png_bytep to, size_t count) {
  auto* rest = static_cast<std::string_view*>(png_get_io_ptr(png));
  if (count > rest->size()) png_error(png, "the file ends too early");
  std::memcpy(to, rest->data(), count);
  rest->remove_prefix(count);
}

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &escape_,
                                  escape_with_message, ignore_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) throw std::bad_alloc();
  }
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool read_header();
  bool convert_to_8_bit_grey_or_rgb();
  bool convert_to_bytes();
  bool read_pixels(std::vector<png_bytep>& rows);

  uint32_t width() const { return png_get_image_width(png_, info_); }
  uint32_t height() const { return png_get_image_height(png_, info_); }
  int channels() const { return png_get_channels(png_, info_); }
  int color_type() const { return png_get_color_type(png_, info_); }
  int bit_depth() const { return png_get_bit_depth(png_, info_); }
  const char* message() const { return escape_.message.data(); }

 private:
  std::string_view rest_;
  Escape escape_ = {};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

bool Decoder::read_header() {
  if (setjmp(escape_.place) != 0) return false;
  png_set_read_fn(png_, &rest_, take_bytes);
  png_read_info(png_, info_);
  return true;
}

bool Decoder::convert_to_8_bit_grey_or_rgb() {
  if (setjmp(escape_.place) != 0) return false;
  png_set_strip_16(png_);
  png_set_expand(png_);  // Palettes, and 1, 2 and 4 bits.
  png_set_strip_alpha(png_);
  png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  return true;
}

// Numbers of a palette stay what they are.
bool Decoder::convert_to_bytes() {
  if (setjmp(escape_.place) != 0) return false;
  png_set_packing(png_);
  png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  return true;
}

bool Decoder::read_pixels(std::vector<png_bytep>& rows) {
  if (setjmp(escape_.place) != 0) return false;
  png_read_image(png_, rows.data());
  png_read_end(png_, nullptr);
  return true;
}

void require(bool succeeded, const Decoder& decoder) {
  if (succeeded) return;
  throw FormatError(
      fmt::format("a PNG image that cannot be decoded: {}; damaged, or cut off",
                  decoder.message()));
}

constexpr const char* kExpectedLabels =
    "a map of labels or distances is a PNG file with a palette, 8-bit grey, or "
    "8-bit RGB with three equal channels";

// Deflate makes at most 1032 bytes of one, and a byte holds 8 pixels at most.
constexpr uint64_t kMostPixelsPerByte = 1032 * 8;

void check_holds_labels(const Decoder& decoder) {
  const int type = decoder.color_type();
  const int depth = decoder.bit_depth();
  const bool is_plain =
      type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_RGB;
  if (type == PNG_COLOR_TYPE_PALETTE || (is_plain && depth == 8)) return;
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

std::vector<png_bytep> row_pointers(Image& image) {
  std::vector<png_bytep> rows;
  for (int y = 0; y < image.height; ++y) rows.push_back(image.row(y));
  return rows;
}

// With the channels that the conversion gives.
Image make_checked_image(const Decoder& decoder, std::string_view bytes) {
  const ImageSize size{.width = int(decoder.width()),
                       .height = int(decoder.height())};
  check_decoded_size(size,
                     uint64_t(decoder.width()) * decoder.height() *
                         uint64_t(decoder.channels()),
                     bytes.size());
  return make_image(size.width, size.height, decoder.channels());
}

void read_checked_header(Decoder& decoder, std::string_view bytes) {
  require(decoder.read_header(), decoder);
  check_image_size(decoder.width(), decoder.height(), bytes.size(),
                   kMostPixelsPerByte);
}

}  // namespace

ImageSize size_of_png(std::string_view bytes) {
  Decoder decoder(bytes);
  read_checked_header(decoder, bytes);
  return {.width = int(decoder.width()), .height = int(decoder.height())};
}

Image decode_png(std::string_view bytes) {
  Decoder decoder(bytes);
  read_checked_header(decoder, bytes);
  require(decoder.convert_to_8_bit_grey_or_rgb(), decoder);
  Image image = make_checked_image(decoder, bytes);
  std::vector<png_bytep> rows = row_pointers(image);
  require(decoder.read_pixels(rows), decoder);
  return image;
}

Image decode_label_png(std::string_view bytes) {
  Decoder decoder(bytes);
  read_checked_header(decoder, bytes);
  check_holds_labels(decoder);
  require(decoder.convert_to_bytes(), decoder);
  Image image = make_checked_image(decoder, bytes);
  std::vector<png_bytep> rows = row_pointers(image);
  require(decoder.read_pixels(rows), decoder);
  return image.channels == 1 ? image : first_of_equal_channels(image);
}

std::string encode_png(const Image& image) {
  check_image(image);
  return encode_png(PngPixels{.width = image.width,
                              .height = image.height,
                              .channels = image.channels,
                              .pixels = image.pixels});
}

}  // namespace lockstep

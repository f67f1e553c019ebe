// libpng leaves an error by longjmp, so no frame between setjmp and that jump
// holds an object with a destructor.
#include "lockstep/formats/png.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>

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

// Without this libpng prints them.
void ignore_warning(png_structp, png_const_charp) {}

void append_bytes(png_structp png, png_bytep from, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<const char*>(from), count);
}

class Encoder {
 public:
  Encoder() {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &escape_,
                                   escape_with_message, ignore_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) throw std::bad_alloc();
  }
  ~Encoder() { png_destroy_write_struct(&png_, &info_); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  bool write(const PngPixels& image, std::string& bytes);
  const char* message() const { return escape_.message.data(); }

 private:
  Escape escape_ = {};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

int color_type_of(const PngPixels& image) {
  if (!image.palette.empty()) return PNG_COLOR_TYPE_PALETTE;
  return image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
}

bool Encoder::write(const PngPixels& image, std::string& bytes) {
  if (setjmp(escape_.place) != 0) return false;
  png_set_write_fn(png_, &bytes, append_bytes, nullptr);
  png_set_IHDR(png_, info_, png_uint_32(image.width), png_uint_32(image.height),
               8, color_type_of(image), PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!image.palette.empty()) {
    static_assert(sizeof(png_color) == 3);
    png_set_PLTE(png_, info_,
                 reinterpret_cast<png_const_colorp>(image.palette.data()),
                 int(image.palette.size() / 3));
  }
  if (image.content == PngContent::kDrawing) {
    png_set_filter(png_, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  }
  png_write_info(png_, info_);
  const size_t row_bytes = size_t(image.width) * size_t(image.channels);
  for (int y = 0; y < image.height; ++y) {
    png_write_row(png_, image.pixels.data() + size_t(y) * row_bytes);
  }
  png_write_end(png_, info_);
  return true;
}

uint32_t big_endian(std::string_view bytes) {
  uint32_t number = 0;
  for (const char byte : bytes.substr(0, 4)) {
    number = number << 8 | static_cast<unsigned char>(byte);
  }
  return number;
}

// 0 for what is no kind of colour.
int channels_of(char color_type) {
  switch (color_type) {
    case PNG_COLOR_TYPE_GRAY: return 1;
    case PNG_COLOR_TYPE_GRAY_ALPHA: return 2;
    case PNG_COLOR_TYPE_RGB: return 3;
    case PNG_COLOR_TYPE_PALETTE: return 3;
    case PNG_COLOR_TYPE_RGB_ALPHA: return 4;
    default: return 0;
  }
}

void check_palette(const PngPixels& image) {
  const size_t num_bytes = image.palette.size();
  if (num_bytes == 0) return;
  const bool is_sound =
      image.channels == 1 && num_bytes % 3 == 0 && num_bytes <= 3 * 256;
  const uint8_t largest =
      *std::max_element(image.pixels.begin(), image.pixels.end());
  if (is_sound && largest < num_bytes / 3) return;
  throw ConfigError(fmt::format(
      "a palette of {} bytes does not fit a image of {} channels whose "
      "largest number is {}",
      num_bytes, image.channels, largest));
}

}  // namespace

std::string encode_png(const PngPixels& image) {
  const bool is_sound =
      image.width > 0 && image.height > 0 &&
      (image.channels == 1 || image.channels == 3) &&
      image.pixels.size() ==
          size_t(image.width) * size_t(image.height) * size_t(image.channels);
  if (!is_sound) {
    throw ConfigError(fmt::format(
        "a image of {} x {} pixels with {} channels cannot have {} bytes",
        image.width, image.height, image.channels, image.pixels.size()));
  }
  check_palette(image);
  Encoder encoder;
  std::string bytes;
  if (!encoder.write(image, bytes)) {
    throw InternalError(
        fmt::format("libpng cannot write an image: {}", encoder.message()));
  }
  return bytes;
}

PngHeader read_png_header(std::string_view bytes) {
  constexpr std::string_view kBegin("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", 16);
  constexpr size_t kHeaderBytes = 33;
  if (bytes.size() < kHeaderBytes || !bytes.starts_with(kBegin)) {
    throw FormatError(
        fmt::format("{} bytes that should be a PNG file do not begin as one",
                    bytes.size()));
  }
  const std::string_view fields = bytes.substr(kBegin.size());
  const uint32_t width = big_endian(fields);
  const uint32_t height = big_endian(fields.substr(4));
  const int channels = channels_of(fields[9]);
  if (width == 0 || width > PNG_UINT_31_MAX || height == 0 ||
      height > PNG_UINT_31_MAX || channels == 0) {
    throw FormatError(
        fmt::format("a PNG file with a damaged header: {} x {} pixels, colour "
                    "type {}",
                    width, height, int(fields[9])));
  }
  return {.width = int(width), .height = int(height), .channels = channels};
}

}  // namespace lockstep

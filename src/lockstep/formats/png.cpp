// libpng leaves an error by longjmp, so no frame between setjmp and that jump
// holds an object with a destructor.
#include "lockstep/formats/png.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "lockstep/error.h"

namespace lockstep::formats {
namespace {

struct PngEscape {
  std::jmp_buf place;
  std::array<char, 128> message;
};

[[noreturn]] void escape_from_libpng(png_structp png, png_const_charp text) {
  auto* escape = static_cast<PngEscape*>(png_get_error_ptr(png));
  std::strncpy(escape->message.data(), text, escape->message.size() - 1);
  std::longjmp(escape->place, 1);
}

// Without it libpng prints warnings; they never concern the pixels.
void ignore_warning(png_structp, png_const_charp) {}

void append_png_bytes(png_structp png, png_bytep from, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<const char*>(from), count);
}

void take_png_bytes(png_structp png, png_bytep to, size_t count) {
  auto* rest = static_cast<std::string_view*>(png_get_io_ptr(png));
  if (count > rest->size()) png_error(png, "the file ends too early");
  std::memcpy(to, rest->data(), count);
  rest->remove_prefix(count);
}

class PngEncoder {
 public:
  PngEncoder() {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &escape_,
                                   escape_from_libpng, ignore_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) throw std::bad_alloc();
  }
  ~PngEncoder() { png_destroy_write_struct(&png_, &info_); }
  PngEncoder(const PngEncoder&) = delete;
  PngEncoder& operator=(const PngEncoder&) = delete;

  bool write(const PngPixels& image, std::string& bytes);
  const char* message() const { return escape_.message.data(); }

 private:
  PngEscape escape_ = {};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

int color_type_of(const PngPixels& image) {
  if (!image.palette.empty()) return PNG_COLOR_TYPE_PALETTE;
  return image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
}

bool PngEncoder::write(const PngPixels& image, std::string& bytes) {
  if (setjmp(escape_.place) != 0) return false;
  png_set_write_fn(png_, &bytes, append_png_bytes, nullptr);
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
  if (!image.text.keyword.empty()) {
    // libpng copies both and does not change them.
    png_text text = {};
    text.compression = PNG_ITXT_COMPRESSION_NONE;
    text.key = const_cast<png_charp>(image.text.keyword.c_str());
    text.text = const_cast<png_charp>(image.text.text.c_str());
    png_set_text(png_, info_, &text, 1);
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

// 0 for an unknown color type.
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
      "a palette of {} bytes does not fit an image of {} channels whose "
      "largest index is {}",
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
        "an image of {} x {} pixels with {} channels cannot have {} bytes",
        image.width, image.height, image.channels, image.pixels.size()));
  }
  check_palette(image);
  PngEncoder encoder;
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

class PngReader::Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &escape_,
                                  escape_from_libpng, ignore_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) throw std::bad_alloc();
  }
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // False on an error of libpng; require() throws it.
  bool read_header();
  bool convert(PngConversion conversion);
  bool read_pixels(std::vector<png_bytep>& rows);

  png_structp png() const { return png_; }
  png_infop info() const { return info_; }

  void require(bool succeeded) const {
    if (succeeded) return;
    throw FormatError(fmt::format(
        "a PNG image that cannot be decoded: {}; damaged, or cut off",
        escape_.message.data()));
  }

 private:
  std::string_view rest_;
  PngEscape escape_ = {};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

bool PngReader::Decoder::read_header() {
  if (setjmp(escape_.place) != 0) return false;
  png_set_read_fn(png_, &rest_, take_png_bytes);
  png_read_info(png_, info_);
  return true;
}

bool PngReader::Decoder::convert(PngConversion conversion) {
  if (setjmp(escape_.place) != 0) return false;
  if (conversion == PngConversion::kGreyOrRgb) {
    png_set_strip_16(png_);
    png_set_expand(png_);  // Palettes, and 1, 2 and 4 bits.
    png_set_strip_alpha(png_);
  } else {
    png_set_packing(png_);
  }
  png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  return true;
}

bool PngReader::Decoder::read_pixels(std::vector<png_bytep>& rows) {
  if (setjmp(escape_.place) != 0) return false;
  png_read_image(png_, rows.data());
  png_read_end(png_, nullptr);
  return true;
}

PngReader::PngReader(std::string_view bytes)
    : decoder_(std::make_unique<Decoder>(bytes)) {
  decoder_->require(decoder_->read_header());
}

PngReader::~PngReader() = default;

uint32_t PngReader::width() const {
  return png_get_image_width(decoder_->png(), decoder_->info());
}

uint32_t PngReader::height() const {
  return png_get_image_height(decoder_->png(), decoder_->info());
}

bool PngReader::has_palette() const {
  return color_type() == PNG_COLOR_TYPE_PALETTE;
}

int PngReader::color_type() const {
  return png_get_color_type(decoder_->png(), decoder_->info());
}

int PngReader::bit_depth() const {
  return png_get_bit_depth(decoder_->png(), decoder_->info());
}

std::string PngReader::text(std::string_view keyword) const {
  png_textp texts = nullptr;
  const int count =
      png_get_text(decoder_->png(), decoder_->info(), &texts, nullptr);
  for (int i = 0; i < count; ++i) {
    if (texts[i].key == keyword && texts[i].text != nullptr) {
      return texts[i].text;
    }
  }
  return "";
}

void PngReader::convert(PngConversion conversion) {
  decoder_->require(decoder_->convert(conversion));
}

int PngReader::channels() const {
  return png_get_channels(decoder_->png(), decoder_->info());
}

void PngReader::read(std::span<uint8_t> pixels) {
  const size_t row_bytes = size_t(width()) * size_t(channels());
  LOCKSTEP_CHECK(pixels.size() == row_bytes * height(), "pixels of this size");
  std::vector<png_bytep> rows;
  rows.reserve(height());
  for (size_t y = 0; y < height(); ++y) {
    rows.push_back(pixels.data() + y * row_bytes);
  }
  decoder_->require(decoder_->read_pixels(rows));
}

}  // namespace lockstep::formats

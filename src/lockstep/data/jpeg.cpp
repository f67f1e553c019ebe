// JPEG by libjpeg-turbo.
//
// libjpeg reports errors by a callback that must not return: it jumps back with
// longjmp. Between setjmp and that jump no stack frame of this file holds an
// object with a destructor; all such objects belong to the callers.
#include <cstdio>
// jpeglib.h needs FILE and size_t to be declared before it.
#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>

#include "lockstep/data/image_codecs.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

struct ErrorManager {
  jpeg_error_mgr base;  // First: libjpeg hands out a pointer to it.
  std::jmp_buf escape;
  std::array<char, JMSG_LENGTH_MAX> message;
};

[[noreturn]] void escape_from_libjpeg(j_common_ptr info) {
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  manager->base.format_message(info, manager->message.data());
  std::longjmp(manager->escape, 1);
}

// Warnings of libjpeg mean that it made pixels up, but for these: bytes between
// segments, and odd headers, which many files of the web have.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR ||
         code == JWRN_ADOBE_XFORM;
}

void on_message(j_common_ptr info, int level) {
  const bool is_warning = level < 0;
  if (is_warning && !is_harmless(info->err->msg_code)) {
    escape_from_libjpeg(info);
  }
}

class JpegDecoder {
 public:
  explicit JpegDecoder(std::string_view bytes) : bytes_(bytes) {
    info_.err = jpeg_std_error(&manager_.base);
    manager_.base.error_exit = escape_from_libjpeg;
    manager_.base.emit_message = on_message;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  bool read_header();
  void choose_scale(int at_least_short_side);
  bool start();
  bool read_pixels(Image& image);
  bool finish();

  const jpeg_decompress_struct& info() const { return info_; }
  const char* message() const { return manager_.message.data(); }

 private:
  std::string_view bytes_;
  jpeg_decompress_struct info_ = {};
  ErrorManager manager_ = {};
};

bool JpegDecoder::read_header() {
  if (setjmp(manager_.escape) != 0) return false;
  jpeg_create_decompress(&info_);
  jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes_.data()),
               bytes_.size());
  jpeg_read_header(&info_, TRUE);
  // libjpeg converts YCbCr to RGB and YCCK to CMYK, nothing else.
  if (info_.num_components == 4) {
    info_.out_color_space = JCS_CMYK;
  } else if (info_.num_components == 1) {
    info_.out_color_space = JCS_GRAYSCALE;
  } else {
    info_.out_color_space = JCS_RGB;
  }
  return true;
}

// Only the scales that libjpeg-turbo has vector code for: others are slower
// than a full decode.
void JpegDecoder::choose_scale(int at_least_short_side) {
  const auto short_side =
      int64_t(std::min(info_.image_width, info_.image_height));
  info_.scale_num = 1;
  info_.scale_denom = 8;
  while (info_.scale_denom > 1 &&
         short_side < int64_t(info_.scale_denom) * at_least_short_side) {
    info_.scale_denom /= 2;
  }
}

bool JpegDecoder::start() {
  if (setjmp(manager_.escape) != 0) return false;
  jpeg_start_decompress(&info_);
  return true;
}

bool JpegDecoder::read_pixels(Image& image) {
  if (setjmp(manager_.escape) != 0) return false;
  const size_t row_bytes =
      size_t(info_.output_width) * size_t(info_.output_components);
  while (info_.output_scanline < info_.output_height) {
    JSAMPROW row = image.pixels.data() + info_.output_scanline * row_bytes;
    jpeg_read_scanlines(&info_, &row, 1);
  }
  return true;
}

bool JpegDecoder::finish() {
  if (setjmp(manager_.escape) != 0) return false;
  jpeg_finish_decompress(&info_);
  return true;
}

// Adobe stores inks inverted: 255 means no ink. Rounded as Pillow does it.
Image cmyk_to_rgb(const Image& cmyk) {
  Image rgb = make_image(cmyk.width, cmyk.height, 3);
  const uint8_t* in = cmyk.pixels.data();
  for (size_t at = 0; at < rgb.pixels.size(); at += 3, in += 4) {
    const unsigned light = in[3];
    for (size_t c = 0; c < 3; ++c) {
      const unsigned product = (255u - in[c]) * light + 128u;
      rgb.pixels[at + c] = uint8_t(light - ((product + (product >> 8)) >> 8));
    }
  }
  return rgb;
}

void require_jpeg(bool succeeded, const JpegDecoder& decoder) {
  if (succeeded) return;
  throw FormatError(
      fmt::format("a JPEG image that cannot be decoded: {}; damaged, cut off, "
                  "or of a kind that is not supported",
                  decoder.message()));
}

// A block of 8x8 pixels takes a bit at least; only arithmetic coding needs
// less.
constexpr uint64_t kMostJpegPixelsPerByte = 8 * 64;
constexpr uint64_t kAnyPixelsPerByte = uint64_t{1} << 28;

void read_jpeg_header(JpegDecoder& decoder, std::string_view bytes) {
  require_jpeg(decoder.read_header(), decoder);
  const jpeg_decompress_struct& info = decoder.info();
  check_image_size(
      info.image_width, info.image_height, bytes.size(),
      info.arith_code ? kAnyPixelsPerByte : kMostJpegPixelsPerByte);
}

// An image of several scans keeps 2 bytes for every coefficient of a component,
// whatever size it is decoded at.
uint64_t memory_of(const jpeg_decompress_struct& info) {
  const uint64_t denominator = info.scale_denom;
  const uint64_t output = (info.image_width / denominator + 1) *
                          (info.image_height / denominator + 1) *
                          uint64_t(info.num_components);
  uint64_t coefficients = 0;
  for (int i = 0; info.progressive_mode && i < info.num_components; ++i) {
    const jpeg_component_info& component = info.comp_info[i];
    coefficients +=
        uint64_t(info.image_width) * info.image_height *
        uint64_t(component.h_samp_factor) * uint64_t(component.v_samp_factor) /
        uint64_t(info.max_h_samp_factor) / uint64_t(info.max_v_samp_factor);
  }
  return output + 2 * coefficients;
}

}  // namespace

ImageSize size_of_jpeg(std::string_view bytes) {
  JpegDecoder decoder(bytes);
  read_jpeg_header(decoder, bytes);
  return {.width = int(decoder.info().image_width),
          .height = int(decoder.info().image_height)};
}

Image decode_jpeg(std::string_view bytes,
                  std::optional<int> at_least_short_side) {
  JpegDecoder decoder(bytes);
  read_jpeg_header(decoder, bytes);
  const jpeg_decompress_struct& info = decoder.info();
  if (at_least_short_side) decoder.choose_scale(*at_least_short_side);
  check_decoded_size(
      {.width = int(info.image_width), .height = int(info.image_height)},
      memory_of(info), bytes.size());
  require_jpeg(decoder.start(), decoder);
  Image image{.width = int(info.output_width),
              .height = int(info.output_height),
              .channels = info.output_components};
  image.pixels.resize(image.row_bytes() * size_t(image.height));
  require_jpeg(decoder.read_pixels(image), decoder);
  require_jpeg(decoder.finish(), decoder);
  if (image.channels == 4) return cmyk_to_rgb(image);
  return image;
}

}  // namespace lockstep::data

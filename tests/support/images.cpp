#include "support/images.h"

#include <cstdio>
// jpeglib.h needs FILE and size_t to be declared before it.
#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>

namespace lockstep::testing {
namespace {

constexpr int kPngWidth = 23;
constexpr int kPngHeight = 17;

// Channels as libjpeg wants them for the kind.
std::vector<uint8_t> jpeg_row(const data::Image& rgb, int y, JpegKind kind) {
  std::vector<uint8_t> out;
  const uint8_t* in = rgb.row(y);
  for (int x = 0; x < rgb.width; ++x, in += 3) {
    if (kind == JpegKind::kGrey) {
      out.push_back(in[0]);
      continue;
    }
    out.insert(out.end(), in, in + 3);
    if (kind == JpegKind::kCmyk || kind == JpegKind::kYcck) out.push_back(204);
  }
  return out;
}

void set_colors(jpeg_compress_struct& info, JpegKind kind) {
  const bool has_inks = kind == JpegKind::kCmyk || kind == JpegKind::kYcck;
  const bool is_grey = kind == JpegKind::kGrey;
  info.input_components = has_inks ? 4 : is_grey ? 1 : 3;
  info.in_color_space = has_inks ? JCS_CMYK : is_grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  if (kind == JpegKind::kYcck) jpeg_set_colorspace(&info, JCS_YCCK);
  if (kind == JpegKind::kProgressive) jpeg_simple_progression(&info);
  jpeg_set_quality(&info, 95, TRUE);
}

void append_bytes(png_structp png, png_bytep from, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<const char*>(from), count);
}

std::vector<png_color> test_palette(int bits) {
  std::vector<png_color> palette;
  for (int i = 0; i < (1 << bits); ++i) {
    palette.push_back({uint8_t(i * 37), uint8_t(255 - i * 11), uint8_t(i * 5)});
  }
  return palette;
}

struct PngKind {
  int color_type;
  int bits;
  int interlace;

  int channels() const {
    const bool has_color = color_type == PNG_COLOR_TYPE_RGB ||
                           color_type == PNG_COLOR_TYPE_RGB_ALPHA;
    const bool has_alpha = (color_type & PNG_COLOR_MASK_ALPHA) != 0;
    return (has_color ? 3 : 1) + (has_alpha ? 1 : 0);
  }
  int sample(int x, int y, int channel) const {
    return (x * 2957 + y * 7919 + channel * 15013) & ((1 << bits) - 1);
  }
  uint8_t level(int value) const {
    return uint8_t(bits == 16 ? value >> 8 : value * 255 / ((1 << bits) - 1));
  }
};

std::string encode(const PngKind& kind) {
  std::string bytes;
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &bytes, append_bytes, nullptr);
  png_set_IHDR(png, info, kPngWidth, kPngHeight, kind.bits, kind.color_type,
               kind.interlace, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (kind.color_type == PNG_COLOR_TYPE_PALETTE) {
    const auto palette = test_palette(kind.bits);
    png_set_PLTE(png, info, palette.data(), int(palette.size()));
    const std::array<uint8_t, 2> alpha{0, 128};
    png_set_tRNS(png, info, alpha.data(), int(alpha.size()), nullptr);
  }
  png_write_info(png, info);
  png_set_packing(png);  // A byte per sample below 8 bits.
  const int passes = png_set_interlace_handling(png);
  for (int row = 0; row < passes * kPngHeight; ++row) {
    std::vector<uint8_t> samples;
    for (int x = 0; x < kPngWidth; ++x) {
      for (int c = 0; c < kind.channels(); ++c) {
        const int value = kind.sample(x, row % kPngHeight, c);
        if (kind.bits == 16) samples.push_back(uint8_t(value >> 8));
        samples.push_back(uint8_t(value));
      }
    }
    png_write_row(png, samples.data());
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

data::Image expected_image(const PngKind& kind) {
  data::Image image = data::make_image(kPngWidth, kPngHeight, 3);
  const auto palette = test_palette(std::min(kind.bits, 8));
  for (int y = 0; y < kPngHeight; ++y) {
    for (int x = 0; x < kPngWidth; ++x) {
      uint8_t* out = image.row(y) + 3 * x;
      const png_color entry =
          palette[size_t(kind.sample(x, y, 0)) & (palette.size() - 1)];
      const std::array<uint8_t, 3> named{entry.red, entry.green, entry.blue};
      for (int c = 0; c < 3; ++c) {
        const int source = kind.channels() >= 3 ? c : 0;
        out[c] = kind.color_type == PNG_COLOR_TYPE_PALETTE
                     ? named[size_t(c)]
                     : kind.level(kind.sample(x, y, source));
      }
    }
  }
  return image;
}

}  // namespace

data::Image test_image(int width, int height) {
  data::Image image = data::make_image(width, height, 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      uint8_t* out = image.row(y) + 3 * x;
      const double across = double(x) / width;
      const double down = double(y) / height;
      const bool in_disc = std::hypot(across - 0.6, down - 0.4) < 0.25;
      out[0] = uint8_t(255 * across);
      out[1] = uint8_t(in_disc ? 220 : 127 + 120 * std::sin(9 * down));
      out[2] = uint8_t(255 * (1 - across) * down);
    }
  }
  return image;
}

std::string encode_jpeg(const data::Image& rgb, JpegKind kind) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = unsigned(rgb.width);
  info.image_height = unsigned(rgb.height);
  set_colors(info, kind);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < rgb.height; ++y) {
    std::vector<uint8_t> row = jpeg_row(rgb, y, kind);
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&info, &pointer, 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<char*>(memory), size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return bytes;
}

std::vector<NamedImage> png_of_each_kind() {
  struct ColorType {
    const char* name;
    int number;
    std::vector<int> bits;
  };
  const std::vector<ColorType> types = {
      {"grey", PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}},
      {"grey-alpha", PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}},
      {"palette", PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}},
      {"rgb", PNG_COLOR_TYPE_RGB, {8, 16}},
      {"rgba", PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}}};
  std::vector<NamedImage> images;
  for (const ColorType& type : types) {
    for (const int bits : type.bits) {
      for (const int interlace : {PNG_INTERLACE_NONE, PNG_INTERLACE_ADAM7}) {
        const PngKind kind{type.number, bits, interlace};
        images.push_back({std::string(type.name) + "-" + std::to_string(bits) +
                              (interlace ? "-interlaced" : ""),
                          encode(kind), expected_image(kind)});
      }
    }
  }
  return images;
}

int largest_difference(const data::Image& a, const data::Image& b) {
  if (a.width != b.width || a.height != b.height || a.channels != b.channels) {
    return 256;
  }
  int largest = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  }
  return largest;
}

}  // namespace lockstep::testing

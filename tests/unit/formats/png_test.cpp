#include "lockstep/formats/png.h"

#include <gtest/gtest.h>
#include <png.h>

#include <vector>

#include "lockstep/error.h"

namespace lockstep {
namespace {

std::vector<uint8_t> pixels_of(size_t count) {
  std::vector<uint8_t> pixels(count);
  for (size_t i = 0; i < count; ++i) pixels[i] = static_cast<uint8_t>(i * 7);
  return pixels;
}

std::vector<uint8_t> read_by_libpng(const std::string& bytes, int channels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_TRUE(
      png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()));
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::vector<uint8_t> read(PNG_IMAGE_SIZE(image));
  EXPECT_TRUE(png_image_finish_read(&image, nullptr, read.data(), 0, nullptr));
  return read;
}

TEST(Png, PixelsComeBackByLibpng) {
  for (const int channels : {1, 3}) {
    for (const formats::PngContent content :
         {formats::PngContent::kPhoto, formats::PngContent::kDrawing}) {
      const auto pixels = pixels_of(size_t(5 * 4 * channels));
      EXPECT_EQ(read_by_libpng(formats::encode_png({.width = 5,
                                                    .height = 4,
                                                    .channels = channels,
                                                    .pixels = pixels,
                                                    .content = content}),
                               channels),
                pixels);
    }
  }
}

TEST(Png, TheHeaderTellsSizeAndChannels) {
  for (const int channels : {1, 3}) {
    const auto pixels = pixels_of(size_t(300 * 2 * channels));
    const formats::PngHeader header =
        formats::read_png_header(formats::encode_png({.width = 300,
                                                      .height = 2,
                                                      .channels = channels,
                                                      .pixels = pixels}));
    EXPECT_EQ(header.width, 300);
    EXPECT_EQ(header.height, 2);
    EXPECT_EQ(header.channels, channels);
  }
}

TEST(Png, OtherBytesAreNoPng) {
  const std::string good = formats::encode_png(
      {.width = 2, .height = 2, .channels = 1, .pixels = pixels_of(4)});
  EXPECT_THROW(formats::read_png_header(""), FormatError);
  EXPECT_THROW(formats::read_png_header(good.substr(0, 20)), FormatError);
  EXPECT_THROW(formats::read_png_header("x" + good), FormatError);
  std::string without_width = good;
  without_width[19] = '\0';
  EXPECT_THROW(formats::read_png_header(without_width), FormatError);
  std::string odd_color = good;
  odd_color[25] = '\x05';
  EXPECT_THROW(formats::read_png_header(odd_color), FormatError);
}

TEST(Png, AImageThatCannotBeIsAnError) {
  const auto pixels = pixels_of(12);
  EXPECT_THROW(formats::encode_png({.width = 0, .height = 0}), ConfigError);
  EXPECT_THROW(
      formats::encode_png({.width = -2, .height = -2, .pixels = pixels}),
      ConfigError);
  EXPECT_THROW(formats::encode_png({.width = 2, .height = 3, .pixels = pixels}),
               ConfigError);
  EXPECT_THROW(formats::encode_png(
                   {.width = 2, .height = 3, .channels = 2, .pixels = pixels}),
               ConfigError);
}

}  // namespace
}  // namespace lockstep

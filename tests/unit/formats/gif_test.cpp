#include "lockstep/formats/gif.h"

#include <gif_lib.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "lockstep/error.h"

namespace lockstep {
namespace {

struct Source {
  const std::string& bytes;
  size_t position = 0;
};

int read_bytes(GifFileType* gif, GifByteType* to, int count) {
  auto& source = *static_cast<Source*>(gif->UserData);
  const size_t taken = std::min(static_cast<size_t>(count),
                                source.bytes.size() - source.position);
  std::memcpy(to, source.bytes.data() + source.position, taken);
  source.position += taken;
  return static_cast<int>(taken);
}

TEST(Gif, FramesComeBackWithinHalfAStepOfThePalette) {
  constexpr int kWidth = 37;
  constexpr int kHeight = 21;
  constexpr int kFrames = 3;
  std::vector<uint8_t> pixels(size_t{3} * kWidth * kHeight * kFrames);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(i * 7 + i / 400);
  }
  const std::string bytes = formats::encode_gif({.width = kWidth,
                                                 .height = kHeight,
                                                 .num_frames = kFrames,
                                                 .pixels = pixels});
  EXPECT_TRUE(bytes.starts_with("GIF89a"));
  Source source{.bytes = bytes};
  int error = 0;
  GifFileType* gif = DGifOpen(&source, read_bytes, &error);
  ASSERT_NE(gif, nullptr);
  ASSERT_EQ(DGifSlurp(gif), GIF_OK);
  EXPECT_EQ(gif->SWidth, kWidth);
  EXPECT_EQ(gif->SHeight, kHeight);
  ASSERT_EQ(gif->ImageCount, kFrames);
  size_t i = 0;
  int worst = 0;
  for (int frame = 0; frame < kFrames; ++frame) {
    for (int k = 0; k < kWidth * kHeight; ++k) {
      const GifColorType& colour =
          gif->SColorMap->Colors[gif->SavedImages[frame].RasterBits[k]];
      for (const int value : {colour.Red, colour.Green, colour.Blue}) {
        worst = std::max(worst, std::abs(value - pixels[i++]));
      }
    }
    GraphicsControlBlock control;
    ASSERT_EQ(DGifSavedExtensionToGCB(gif, frame, &control), GIF_OK);
    EXPECT_EQ(control.DelayTime, frame == kFrames - 1 ? 200 : 8);
  }
  EXPECT_LE(worst, 26);  // Half of 255 / 5.
  DGifCloseFile(gif, &error);
}

TEST(Gif, RefusesPixelsThatDoNotFit) {
  const std::vector<uint8_t> pixels(12);
  EXPECT_THROW(
      formats::encode_gif(
          {.width = 2, .height = 2, .num_frames = 2, .pixels = pixels}),
      ConfigError);
  EXPECT_THROW(
      formats::encode_gif(
          {.width = 0, .height = 2, .num_frames = 1, .pixels = pixels}),
      ConfigError);
}

}  // namespace
}  // namespace lockstep

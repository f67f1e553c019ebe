// Against OpenCV itself: tests/interop/scribble_data_parity_test.cpp.
#include "lockstep/data/opencv_ops.h"

#include <gtest/gtest.h>

#include <random>

#include "lockstep/error.h"
#include "support/images.h"

namespace lockstep {
namespace {

using testing::test_image;

Box all_of(ImageSize size) {
  return {.width = size.width, .height = size.height};
}

ImageSize size_of(const Image& image) { return {image.width, image.height}; }

Box any_window(ImageSize size, std::mt19937& random) {
  Box box;
  box.width = 1 + static_cast<int>(random() % unsigned(size.width));
  box.height = 1 + static_cast<int>(random() % unsigned(size.height));
  box.left = static_cast<int>(random() % unsigned(size.width - box.width + 1));
  box.top = static_cast<int>(random() % unsigned(size.height - box.height + 1));
  return box;
}

constexpr std::array<uint8_t, 3> kBorder = {9, 90, 200};

TEST(OpenCvOps, AWindowIsTheSameAsACropOfTheWhole) {
  std::mt19937 random(1);
  const Image image = test_image(61, 83);
  for (int round = 0; round < 60; ++round) {
    const Scaling scaling = scaling_by(size_of(image), 0.5 + 0.025 * round);
    const Tile whole = scale_linear(image, scaling, all_of(scaling.to));
    const Box box = any_window(scaling.to, random);
    EXPECT_EQ(scale_linear(image, scaling, box).image.pixels,
              crop(whole.image, box).pixels);

    const Rotation rotation(scaling.to, round - 30);
    const Tile turned = rotation.linear(whole, all_of(scaling.to), kBorder);
    const Tile needed = scale_linear(image, scaling, rotation.source_of(box));
    EXPECT_EQ(rotation.linear(needed, box, kBorder).image.pixels,
              crop(turned.image, box).pixels)
        << round;

    const Tile blurred = blur_5x5(whole, all_of(scaling.to));
    const Tile around = scale_linear(image, scaling, grown(box, 2, scaling.to));
    EXPECT_EQ(blur_5x5(around, box).image.pixels,
              crop(blurred.image, box).pixels);
  }
}

TEST(OpenCvOps, FactorOneAndNoAngleChangeNothing) {
  const Image image = test_image(40, 30);
  const Scaling scaling = scaling_by(size_of(image), 1);
  EXPECT_EQ(scale_linear(image, scaling, all_of(scaling.to)).image.pixels,
            image.pixels);
  const Rotation rotation(size_of(image), 0);
  EXPECT_EQ(rotation.linear(whole_tile(image), all_of(size_of(image)), kBorder)
                .image.pixels,
            image.pixels);
}

TEST(OpenCvOps, ImagesOfAnySizeAreTaken) {
  for (const ImageSize size : {ImageSize{1, 1}, {1, 9}, {2, 2}, {7, 1}}) {
    const Image image = test_image(size.width, size.height);
    const Scaling scaling = scaling_by(size, 0.5);
    EXPECT_GE(scaling.to.width, 1);
    EXPECT_GE(scaling.to.height, 1);
    const Tile small = scale_linear(image, scaling, all_of(scaling.to));
    const Tile turned =
        Rotation(scaling.to, 10).linear(small, all_of(scaling.to), kBorder);
    EXPECT_EQ(blur_5x5(turned, all_of(scaling.to)).image.width,
              scaling.to.width);
  }
  EXPECT_THROW(scaling_to({4, 4}, {0, 4}), ConfigError);
}

TEST(OpenCvOps, BlurKeepsAnEvenImage) {
  Image even = make_image(9, 5, 3);
  std::fill(even.pixels.begin(), even.pixels.end(), uint8_t{77});
  EXPECT_EQ(blur_5x5(whole_tile(even), {.width = 9, .height = 5}).image.pixels,
            even.pixels);
}

}  // namespace
}  // namespace lockstep

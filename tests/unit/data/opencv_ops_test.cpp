// Against OpenCV itself: tests/interop/scribble_data_parity_test.cpp.
#include "lockstep/data/opencv_ops.h"

#include <gtest/gtest.h>

#include <random>

#include "lockstep/error.h"
#include "support/images.h"

namespace lockstep {
namespace {

using testing::test_image;

data::Box all_of(data::ImageSize size) {
  return {.width = size.width, .height = size.height};
}

data::ImageSize size_of(const data::Image& image) {
  return {image.width, image.height};
}

data::Box any_window(data::ImageSize size, std::mt19937& random) {
  data::Box box;
  box.width = 1 + static_cast<int>(random() % unsigned(size.width));
  box.height = 1 + static_cast<int>(random() % unsigned(size.height));
  box.left = static_cast<int>(random() % unsigned(size.width - box.width + 1));
  box.top = static_cast<int>(random() % unsigned(size.height - box.height + 1));
  return box;
}

constexpr std::array<uint8_t, 3> kBorder = {9, 90, 200};

TEST(OpenCvOps, AWindowIsTheSameAsACropOfTheWhole) {
  std::mt19937 random(1);
  const data::Image image = test_image(61, 83);
  for (int round = 0; round < 60; ++round) {
    const data::Scaling scaling =
        data::scaling_by(size_of(image), 0.5 + 0.025 * round);
    const data::Tile whole =
        data::scale_linear(image, scaling, all_of(scaling.to));
    const data::Box box = any_window(scaling.to, random);
    EXPECT_EQ(data::scale_linear(image, scaling, box).image.pixels,
              data::crop(whole.image, box).pixels);

    const data::Rotation rotation(scaling.to, round - 30);
    const data::Tile turned =
        rotation.linear(whole, all_of(scaling.to), kBorder);
    const data::Tile needed =
        data::scale_linear(image, scaling, rotation.source_of(box));
    EXPECT_EQ(rotation.linear(needed, box, kBorder).image.pixels,
              data::crop(turned.image, box).pixels)
        << round;

    const data::Tile blurred = data::blur_5x5(whole, all_of(scaling.to));
    const data::Tile around =
        data::scale_linear(image, scaling, data::grown(box, 2, scaling.to));
    EXPECT_EQ(data::blur_5x5(around, box).image.pixels,
              data::crop(blurred.image, box).pixels);
  }
}

TEST(OpenCvOps, FactorOneAndNoAngleChangeNothing) {
  const data::Image image = test_image(40, 30);
  const data::Scaling scaling = data::scaling_by(size_of(image), 1);
  EXPECT_EQ(data::scale_linear(image, scaling, all_of(scaling.to)).image.pixels,
            image.pixels);
  const data::Rotation rotation(size_of(image), 0);
  EXPECT_EQ(
      rotation.linear(data::whole_tile(image), all_of(size_of(image)), kBorder)
          .image.pixels,
      image.pixels);
}

TEST(OpenCvOps, ImagesOfAnySizeAreTaken) {
  for (const data::ImageSize size :
       {data::ImageSize{1, 1}, {1, 9}, {2, 2}, {7, 1}}) {
    const data::Image image = test_image(size.width, size.height);
    const data::Scaling scaling = data::scaling_by(size, 0.5);
    EXPECT_GE(scaling.to.width, 1);
    EXPECT_GE(scaling.to.height, 1);
    const data::Tile small =
        data::scale_linear(image, scaling, all_of(scaling.to));
    const data::Tile turned = data::Rotation(scaling.to, 10)
                                  .linear(small, all_of(scaling.to), kBorder);
    EXPECT_EQ(data::blur_5x5(turned, all_of(scaling.to)).image.width,
              scaling.to.width);
  }
  EXPECT_THROW(data::scaling_to({4, 4}, {0, 4}), ConfigError);
}

TEST(OpenCvOps, BlurKeepsAnEvenImage) {
  data::Image even = data::make_image(9, 5, 3);
  std::fill(even.pixels.begin(), even.pixels.end(), uint8_t{77});
  EXPECT_EQ(data::blur_5x5(data::whole_tile(even), {.width = 9, .height = 5})
                .image.pixels,
            even.pixels);
}

}  // namespace
}  // namespace lockstep

#include "lockstep/data/image_ops.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "support/images.h"

// That the levels are those of Pillow: tests/interop/image_parity_test.cpp.
namespace lockstep {
namespace {

using testing::largest_difference;
using testing::test_image;

constexpr data::Filter kFilters[] = {data::Filter::kNearest, data::Filter::kBox,
                                     data::Filter::kBilinear,
                                     data::Filter::kBicubic};

data::Image grey(int width, int height, std::vector<uint8_t> pixels) {
  data::Image image = data::make_image(width, height, 1);
  image.pixels = std::move(pixels);
  return image;
}

TEST(ImageOps, AnImageOfOneColorKeepsItAtAnySize) {
  data::Image image = data::make_image(37, 21, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{77});
  for (const data::Filter filter : kFilters) {
    for (const auto& [width, height] : {std::pair{9, 60}, {64, 5}, {1, 1}}) {
      const data::Image out = data::resize(image, {width, height}, filter);
      EXPECT_EQ(out.pixels,
                std::vector<uint8_t>(size_t(width * height * 3), 77));
    }
  }
}

TEST(ImageOps, BoxAveragesAndNearestPicks) {
  const data::Image image = grey(4, 2, {0, 10, 100, 200, 20, 30, 100, 201});
  EXPECT_EQ(data::resize(image, {2, 1}, data::Filter::kBox).pixels,
            (std::vector<uint8_t>{15, 151}));
  EXPECT_EQ(data::resize(image, {2, 1}, data::Filter::kNearest).pixels,
            (std::vector<uint8_t>{30, 201}));
}

TEST(ImageOps, TheSameSizeIsTheSameImage) {
  const data::Image image = test_image(20, 30);
  for (const data::Filter filter : kFilters) {
    EXPECT_EQ(largest_difference(data::resize(image, {20, 30}, filter), image),
              0);
  }
}

TEST(ImageOps, RefusesSizesAndPlacesThatDoNotFit) {
  const data::Image image = test_image(20, 30);
  EXPECT_THROW(data::resize(image, {0, 5}, data::Filter::kBox), ConfigError);
  EXPECT_THROW(data::resize(data::Image{}, {5, 5}, data::Filter::kBox),
               ConfigError);
  EXPECT_THROW(data::center_crop_adm(image, 0), ConfigError);
  EXPECT_THROW(
      data::crop(image, {.left = 1, .top = 0, .width = 20, .height = 1}),
      ConfigError);
  EXPECT_THROW(
      data::crop(image, {.left = 0, .top = -1, .width = 2, .height = 1}),
      ConfigError);
}

TEST(ImageOps, CropAndFlipMovePixels) {
  const data::Image image = grey(3, 2, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(
      data::crop(image, {.left = 1, .top = 1, .width = 2, .height = 1}).pixels,
      (std::vector<uint8_t>{5, 6}));
  EXPECT_EQ(data::flip_horizontal(image).pixels,
            (std::vector<uint8_t>{3, 2, 1, 6, 5, 4}));
  const data::Image color = test_image(31, 8);
  EXPECT_EQ(largest_difference(
                data::flip_horizontal(data::flip_horizontal(color)), color),
            0);
}

TEST(ImageOps, TheAdmCropIsASquareOfAnyImage) {
  for (const auto& [width, height] :
       {std::pair{500, 375}, {64, 64}, {10, 300}, {33, 7}, {256, 128}}) {
    const data::Image square =
        data::center_crop_adm(test_image(width, height), 64);
    EXPECT_EQ(square.width, 64);
    EXPECT_EQ(square.height, 64);
  }
}

TEST(ImageOps, AnImageDecodedSmallerIsTakenForTheWhole) {
  const data::Image whole = test_image(500, 375);
  const std::string jpeg =
      testing::encode_jpeg(whole, testing::JpegKind::kBaseline);
  const data::ImageSize full = data::size_of_image(jpeg);
  const data::Image quarter =
      data::decode_image(jpeg, {.at_least_short_side = 64});
  ASSERT_EQ(quarter.height, 94);  // 93.75 rows of image
  const auto mean_difference = [](const data::Image& a, const data::Image& b) {
    const auto distance =
        data::to_tensor(a).to(at::kFloat) - data::to_tensor(b);
    return distance.abs().mean().item<float>();
  };
  EXPECT_LT(mean_difference(data::center_crop_adm(quarter, full, 64),
                            data::center_crop_adm(whole, 64)),
            1.5);
  EXPECT_LT(mean_difference(
                data::resize(quarter, full, {50, 60}, data::Filter::kBicubic),
                data::resize(whole, {50, 60}, data::Filter::kBicubic)),
            1.5);
  EXPECT_THROW(data::resize(quarter, {500, 500}, {50, 60}, data::Filter::kBox),
               ConfigError);
}

TEST(ImageOps, ATensorHoldsOnePlanePerChannel) {
  const data::Image image = test_image(5, 4);
  const at::Tensor tensor = data::to_tensor(image);
  ASSERT_EQ(tensor.sizes(), (std::vector<int64_t>{3, 4, 5}));
  ASSERT_EQ(tensor.scalar_type(), at::kByte);
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(tensor[c][2][1].item<int>(), image.row(2)[3 + c]);
  }
}

}  // namespace
}  // namespace lockstep

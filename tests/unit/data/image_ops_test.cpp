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

constexpr Filter kFilters[] = {Filter::kNearest, Filter::kBox,
                               Filter::kBilinear, Filter::kBicubic};

Image grey(int width, int height, std::vector<uint8_t> pixels) {
  Image image = make_image(width, height, 1);
  image.pixels = std::move(pixels);
  return image;
}

TEST(ImageOps, AnImageOfOneColorKeepsItAtAnySize) {
  Image image = make_image(37, 21, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{77});
  for (const Filter filter : kFilters) {
    for (const auto& [width, height] : {std::pair{9, 60}, {64, 5}, {1, 1}}) {
      const Image out = resize(image, {width, height}, filter);
      EXPECT_EQ(out.pixels,
                std::vector<uint8_t>(size_t(width * height * 3), 77));
    }
  }
}

TEST(ImageOps, BoxAveragesAndNearestPicks) {
  const Image image = grey(4, 2, {0, 10, 100, 200, 20, 30, 100, 201});
  EXPECT_EQ(resize(image, {2, 1}, Filter::kBox).pixels,
            (std::vector<uint8_t>{15, 151}));
  EXPECT_EQ(resize(image, {2, 1}, Filter::kNearest).pixels,
            (std::vector<uint8_t>{30, 201}));
}

TEST(ImageOps, TheSameSizeIsTheSameImage) {
  const Image image = test_image(20, 30);
  for (const Filter filter : kFilters) {
    EXPECT_EQ(largest_difference(resize(image, {20, 30}, filter), image), 0);
  }
}

TEST(ImageOps, RefusesSizesAndPlacesThatDoNotFit) {
  const Image image = test_image(20, 30);
  EXPECT_THROW(resize(image, {0, 5}, Filter::kBox), ConfigError);
  EXPECT_THROW(resize(Image{}, {5, 5}, Filter::kBox), ConfigError);
  EXPECT_THROW(center_crop_adm(image, 0), ConfigError);
  EXPECT_THROW(crop(image, {.left = 1, .top = 0, .width = 20, .height = 1}),
               ConfigError);
  EXPECT_THROW(crop(image, {.left = 0, .top = -1, .width = 2, .height = 1}),
               ConfigError);
}

TEST(ImageOps, CropAndFlipMovePixels) {
  const Image image = grey(3, 2, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(crop(image, {.left = 1, .top = 1, .width = 2, .height = 1}).pixels,
            (std::vector<uint8_t>{5, 6}));
  EXPECT_EQ(flip_horizontal(image).pixels,
            (std::vector<uint8_t>{3, 2, 1, 6, 5, 4}));
  const Image color = test_image(31, 8);
  EXPECT_EQ(largest_difference(flip_horizontal(flip_horizontal(color)), color),
            0);
}

TEST(ImageOps, TheAdmCropIsASquareOfAnyImage) {
  for (const auto& [width, height] :
       {std::pair{500, 375}, {64, 64}, {10, 300}, {33, 7}, {256, 128}}) {
    const Image square = center_crop_adm(test_image(width, height), 64);
    EXPECT_EQ(square.width, 64);
    EXPECT_EQ(square.height, 64);
  }
}

TEST(ImageOps, AnImageDecodedSmallerIsTakenForTheWhole) {
  const Image whole = test_image(500, 375);
  const std::string jpeg =
      testing::encode_jpeg(whole, testing::JpegKind::kBaseline);
  const ImageSize full = size_of_image(jpeg);
  const Image quarter = decode_image(jpeg, {.at_least_short_side = 64});
  ASSERT_EQ(quarter.height, 94);  // 93.75 rows of image
  const auto mean_difference = [](const Image& a, const Image& b) {
    const auto distance = to_tensor(a).to(at::kFloat) - to_tensor(b);
    return distance.abs().mean().item<float>();
  };
  EXPECT_LT(mean_difference(center_crop_adm(quarter, full, 64),
                            center_crop_adm(whole, 64)),
            1.5);
  EXPECT_LT(mean_difference(resize(quarter, full, {50, 60}, Filter::kBicubic),
                            resize(whole, {50, 60}, Filter::kBicubic)),
            1.5);
  EXPECT_THROW(resize(quarter, {500, 500}, {50, 60}, Filter::kBox),
               ConfigError);
}

TEST(ImageOps, ATensorHoldsOnePlanePerChannel) {
  const Image image = test_image(5, 4);
  const at::Tensor tensor = to_tensor(image);
  ASSERT_EQ(tensor.sizes(), (std::vector<int64_t>{3, 4, 5}));
  ASSERT_EQ(tensor.scalar_type(), at::kByte);
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(tensor[c][2][1].item<int>(), image.row(2)[3 + c]);
  }
}

}  // namespace
}  // namespace lockstep

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lockstep/datasets/voc/augment.h"
#include "lockstep/datasets/voc/distance_map.h"
#include "lockstep/datasets/voc/samples.h"
#include "lockstep/error.h"
#include "support/images.h"

namespace lockstep {
namespace {

data::ImageSize size_of(const data::Image& image) {
  return {image.width, image.height};
}

// Large areas of labels; every label has a level of its own.
data::Image marks(int width, int height) {
  data::Image map = data::make_image(width, height, 1);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      map.row(y)[x] = static_cast<uint8_t>(1 + x / 40 + 4 * (y / 40));
    }
  }
  return map;
}

uint8_t level_of(uint8_t label) { return static_cast<uint8_t>(label * 10); }

data::Image painted(const data::Image& map) {
  data::Image image = data::make_image(map.width, map.height, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = level_of(map.pixels[i / 3]);
  }
  return image;
}

// Whether all pixels within 4 of this one have its label: then neither blur nor
// linear sampling has mixed levels there.
bool is_inner(const data::Image& map, int x, int y) {
  for (int dy = -4; dy <= 4; ++dy) {
    for (int dx = -4; dx <= 4; ++dx) {
      const int to_x = x + dx;
      const int to_y = y + dy;
      if (to_x < 0 || to_y < 0 || to_x >= map.width || to_y >= map.height ||
          map.row(to_y)[to_x] != map.row(y)[x]) {
        return false;
      }
    }
  }
  return true;
}

data::Image to_image(const at::Tensor& map) {
  data::Image image = data::make_image(static_cast<int>(map.size(1)),
                                       static_cast<int>(map.size(0)), 1);
  std::copy_n(map.const_data_ptr<uint8_t>(), image.pixels.size(),
              image.pixels.data());
  return image;
}

TEST(ScribbleAugment, ImageAndMapsStayRegistered) {
  const data::Image map = marks(150, 110);
  const data::Image image = painted(map);
  int64_t num_checked = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const voc::AugmentDraws draws = voc::draw_augmentation({.side = 120}, seed);
    const voc::Augmentation way(size_of(map), 120, draws);
    const at::Tensor levels = way.image(image);
    const data::Image labels = to_image(way.map(map));
    for (int y = 0; y < 120; ++y) {
      for (int x = 0; x < 120; ++x) {
        const uint8_t label = labels.row(y)[x];
        if (label == data::kNoLabel || !is_inner(labels, x, y)) continue;
        for (int c = 0; c < 3; ++c) {
          const auto place = (int64_t{c} * 120 + y) * 120 + x;
          ASSERT_EQ(levels.const_data_ptr<uint8_t>()[place], level_of(label))
              << "seed " << seed << " at " << x << ", " << y;
        }
        ++num_checked;
      }
    }
  }
  EXPECT_GT(num_checked, 100'000);
}

TEST(ScribbleAugment, PaddingHasMeanColourAndNoLabel) {
  const data::Image map = marks(60, 50);
  const voc::Augmentation way(size_of(map), 100, voc::AugmentDraws{});
  const at::Tensor image = way.image(painted(map));
  const at::Tensor labels = way.map(map);
  // 20 and 25 pixels come first.
  EXPECT_EQ(labels[24][50].item<int>(), voc::kPaddingLevel);
  EXPECT_EQ(labels[50][19].item<int>(), voc::kPaddingLevel);
  EXPECT_EQ(labels[25][20].item<int>(), map.pixels.front());
  EXPECT_EQ(labels[74][79].item<int>(), map.pixels.back());
  EXPECT_EQ(labels[75][79].item<int>(), voc::kPaddingLevel);
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(image[c][0][0].item<int>(), voc::kPaddingColour[size_t(c)]);
  }
}

TEST(ScribbleAugment, WithoutDrawsTheMiddleIsCutOut) {
  const data::Image map = marks(150, 111);
  const at::Tensor labels =
      voc::Augmentation(size_of(map), 40, voc::AugmentDraws{}).map(map);
  EXPECT_EQ(to_image(labels).pixels,
            data::crop(map, {.left = 55, .top = 35, .width = 40, .height = 40})
                .pixels);
}

TEST(ScribbleAugment, MirrorTurnsImageAndMapAround) {
  const data::Image map = marks(150, 110);
  const data::ImageSize size = size_of(map);
  const voc::Augmentation plain(size, 200, voc::AugmentDraws{});
  const voc::Augmentation mirrored(size, 200,
                                   voc::AugmentDraws{.is_mirrored = true});
  EXPECT_TRUE(at::equal(mirrored.map(map), plain.map(map).flip({1})));
  EXPECT_TRUE(at::equal(mirrored.image(painted(map)),
                        plain.image(painted(map)).flip({2})));
}

TEST(ScribbleAugment, DrawsHaveTheRightRangesAndChances) {
  int rotated = 0;
  int blurred = 0;
  int mirrored = 0;
  double least = 9;
  double largest = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const voc::AugmentDraws draws = voc::draw_augmentation({}, seed);
    least = std::min(least, draws.scale);
    largest = std::max(largest, draws.scale);
    if (draws.degrees) {
      ++rotated;
      EXPECT_LE(std::abs(*draws.degrees), 10);
    }
    blurred += draws.is_blurred ? 1 : 0;
    mirrored += draws.is_mirrored ? 1 : 0;
  }
  EXPECT_GE(least, 0.5);
  EXPECT_LT(least, 0.51);
  EXPECT_LE(largest, 2.0);
  EXPECT_GT(largest, 1.99);
  for (const int count : {rotated, blurred, mirrored}) {
    EXPECT_NEAR(count, 2000, 150);
  }
}

TEST(ScribbleAugment, EveryPlaceOfACropIsDrawn) {
  data::Image map = data::make_image(5, 3, 1);
  for (size_t i = 0; i < 15; ++i) map.pixels[i] = static_cast<uint8_t>(i);
  std::set<int> corners;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    voc::AugmentDraws draws = voc::draw_augmentation({}, seed);
    draws = {.across = draws.across, .down = draws.down};
    corners.insert(
        voc::Augmentation({5, 3}, 2, draws).map(map)[0][0].item<int>());
  }
  EXPECT_EQ(corners, (std::set<int>{0, 1, 2, 3, 5, 6, 7, 8}));
}

TEST(ScribbleAugment, TinyAndNarrowImagesAreTaken) {
  for (const data::ImageSize size :
       {data::ImageSize{1, 1}, {3, 200}, {200, 2}}) {
    const data::Image image = testing::test_image(size.width, size.height);
    for (uint64_t seed = 0; seed < 30; ++seed) {
      const voc::Augmentation way(size, 64, voc::draw_augmentation({}, seed));
      EXPECT_EQ(way.image(image).numel(), 3 * 64 * 64);
    }
  }
  EXPECT_THROW(voc::Augmentation({4, 4}, 0, voc::AugmentDraws{}), ConfigError);
}

}  // namespace
}  // namespace lockstep

// Against scipy and OpenCV: tests/interop/scribble_data_parity_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lockstep/datasets/voc/distance_map.h"

namespace lockstep {
namespace {

int64_t nearest_by_search(const data::Image& mask, int x, int y) {
  int64_t least = -1;
  for (int to_y = 0; to_y < mask.height; ++to_y) {
    for (int to_x = 0; to_x < mask.width; ++to_x) {
      if (mask.row(to_y)[to_x] == 0) continue;
      const int64_t dx = to_x - x;
      const int64_t dy = to_y - y;
      const int64_t square = dx * dx + dy * dy;
      if (least < 0 || square < least) least = square;
    }
  }
  return least;
}

data::Image random_mask(int width, int height, int one_of,
                        std::mt19937& random) {
  data::Image mask = data::make_image(width, height, 1);
  for (uint8_t& pixel : mask.pixels) {
    pixel = random() % unsigned(one_of) == 0 ? 1 : 0;
  }
  return mask;
}

TEST(ScribbleDistance, IsExact) {
  std::mt19937 random(5);
  for (int round = 0; round < 120; ++round) {
    const int width = 1 + static_cast<int>(random() % 40);
    const int height = 1 + static_cast<int>(random() % 40);
    const data::Image mask = random_mask(width, height, 2 + round * 5, random);
    const std::vector<int64_t> squares = voc::squared_distances(mask);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        ASSERT_EQ(squares[size_t(y) * size_t(width) + size_t(x)],
                  nearest_by_search(mask, x, y))
            << width << "x" << height << " at " << x << ", " << y;
      }
    }
  }
}

TEST(ScribbleDistance, ScribbleMapFallsFromObjectsOn) {
  data::Image scribbles = data::make_image(200, 1, 1);
  std::fill(scribbles.pixels.begin(), scribbles.pixels.end(), data::kNoLabel);
  scribbles.pixels[0] = 7;
  scribbles.pixels[150] = 0;  // A scribble of the background does not count.
  const data::Image map = voc::scribble_distance_map(scribbles, 4);
  EXPECT_EQ(map.pixels[0], 255);
  EXPECT_EQ(map.pixels[1], 253);
  EXPECT_EQ(map.pixels[100], 55);
  EXPECT_EQ(map.pixels[127], 1);
  EXPECT_EQ(map.pixels[128], 0);
  EXPECT_EQ(map.pixels[150], 0);
}

TEST(ScribbleDistance, LevelsAreCutAndNotRounded) {
  data::Image scribbles = data::make_image(4, 1, 1);
  scribbles.pixels = {3, 0, 0, 0};
  // sqrt(2.5) * 3 = 4.74
  EXPECT_EQ(voc::scribble_distance_map(scribbles, 2.5).pixels[3], 255 - 4);
}

TEST(ScribbleDistance, OutlineMapRisesOnBothSides) {
  data::Image labels = data::make_image(9, 9, 1);
  std::fill(labels.pixels.begin(), labels.pixels.end(), uint8_t{0});
  for (int y = 2; y < 7; ++y) std::fill_n(labels.row(y) + 2, 5, uint8_t{4});
  const data::Image map = voc::outline_distance_map(labels, 100);
  EXPECT_EQ(map.row(2)[2], 0);
  EXPECT_EQ(map.row(4)[2], 0);
  EXPECT_EQ(map.row(4)[3], 10);
  EXPECT_EQ(map.row(4)[4], 20);
  EXPECT_EQ(map.row(4)[0], 20);
  EXPECT_EQ(map.row(1)[1], 14);
}

TEST(ScribbleDistance, TheEdgeOfTheImageIsAnOutlineOfObjects) {
  data::Image labels = data::make_image(7, 7, 1);
  std::fill(labels.pixels.begin(), labels.pixels.end(), uint8_t{1});
  const data::Image map = voc::outline_distance_map(labels, 100);
  EXPECT_EQ(map.row(3)[0], 0);
  EXPECT_EQ(map.row(3)[3], 30);
}

TEST(ScribbleDistance, WithoutObjectsAllIsFar) {
  for (const uint8_t label : {uint8_t{0}, data::kNoLabel}) {
    data::Image labels = data::make_image(6, 5, 1);
    std::fill(labels.pixels.begin(), labels.pixels.end(), label);
    const std::vector<uint8_t> zeros(30, 0);
    const std::vector<uint8_t> full(30, 255);
    EXPECT_EQ(voc::scribble_distance_map(labels, 2.7).pixels, zeros);
    EXPECT_EQ(voc::outline_distance_map(labels, 403).pixels, full);
  }
}

}  // namespace
}  // namespace lockstep

// Whole images by windows, and how well they were segmented.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "lockstep/models/deeplab/confusion.h"
#include "lockstep/models/deeplab/windows.h"

namespace lockstep {
namespace {

TEST(WindowPlaces, OverlapByAThirdAndEndWithTheLength) {
  using Places = std::vector<int64_t>;
  EXPECT_EQ(deeplab::window_positions(465, 465), (Places{0}));
  EXPECT_EQ(deeplab::window_positions(466, 465), (Places{0, 1}));
  EXPECT_EQ(deeplab::window_positions(775, 465), (Places{0, 310}));
  EXPECT_EQ(deeplab::window_positions(776, 465), (Places{0, 310, 311}));
  EXPECT_EQ(deeplab::window_positions(1024, 465), (Places{0, 310, 559}));
}

// Logits that are the pixels themselves.
at::Tensor pixels(const at::Tensor& windows) {
  EXPECT_EQ(windows.size(2), 30);
  EXPECT_EQ(windows.size(3), 30);
  EXPECT_LE(windows.size(0), 4);
  return windows;
}

TEST(Windows, ShowEveryPixelAtItsPlace) {
  torch::manual_seed(1);
  const at::Tensor image = torch::randn({3, 50, 71});
  const at::Tensor found = deeplab::segment_by_windows(image, pixels,
                                                       {.window = 30,
                                                        .base_side = 71,
                                                        .scales = {1.0},
                                                        .num_classes = 3,
                                                        .batch_size = 4});
  EXPECT_TRUE(torch::allclose(found, image.softmax(0), 1e-5, 1e-6));
}

// Smaller than a window: the padding around it is cut off again.
TEST(Windows, SurroundSmallImages) {
  torch::manual_seed(2);
  const at::Tensor image = torch::randn({3, 17, 30});
  const at::Tensor found = deeplab::segment_by_windows(image, pixels,
                                                       {.window = 30,
                                                        .base_side = 30,
                                                        .scales = {1.0},
                                                        .num_classes = 3,
                                                        .batch_size = 4});
  EXPECT_TRUE(torch::allclose(found, image.softmax(0), 1e-5, 1e-6));
}

TEST(Windows, AverageOverTheScales) {
  // Left and right halves: at every scale the same away from their border.
  at::Tensor image = torch::zeros({3, 40, 60});
  image[0].slice(1, 0, 30) = 4;
  image[2].slice(1, 30, 60) = 4;
  const at::Tensor found = deeplab::segment_by_windows(
      image, pixels,
      {.window = 30, .base_side = 60, .num_classes = 3, .batch_size = 4});
  EXPECT_TRUE(torch::allclose(found.sum(0), torch::ones({40, 60}), 1e-4, 1e-5));
  const at::Tensor classes = found.argmax(0);
  EXPECT_TRUE((classes.slice(1, 0, 28) == 0).all().item<bool>());
  EXPECT_TRUE((classes.slice(1, 32, 60) == 2).all().item<bool>());
  EXPECT_NEAR(found[0][5][5].item<double>(), std::exp(4) / (std::exp(4) + 2),
              1e-4);
}

TEST(Confusion, CountsTruthByRowsAndIgnoresWhatHasNone) {
  const at::Tensor truth =
      torch::tensor({{0, 1, 1}, {2, 255, 0}}, torch::kByte);
  const at::Tensor found = torch::tensor({{0, 1, 0}, {1, 2, 0}});
  const at::Tensor counts = deeplab::confusion_matrix(truth, found, 4);
  const at::Tensor expected = torch::tensor(
      {{2, 0, 0, 0}, {1, 1, 0, 0}, {0, 1, 0, 0}, {0, 0, 0, 0}}, torch::kLong);
  EXPECT_TRUE(torch::equal(counts, expected)) << counts;
}

TEST(Confusion, ClassesThatAreNowhereDoNotCount) {
  const at::Tensor counts = torch::tensor(
      {{2, 0, 0, 0}, {1, 1, 0, 0}, {0, 1, 0, 0}, {0, 0, 0, 0}}, torch::kLong);
  const deeplab::SegmentationScores scores =
      deeplab::segmentation_scores(counts);
  ASSERT_EQ(scores.iou_of_class.size(), 4U);
  EXPECT_DOUBLE_EQ(scores.iou_of_class[0], 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores.iou_of_class[1], 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores.iou_of_class[2], 0);
  EXPECT_TRUE(std::isnan(scores.iou_of_class[3]));
  EXPECT_DOUBLE_EQ(scores.iou, 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores.accuracy, 3.0 / 5);
}

}  // namespace
}  // namespace lockstep

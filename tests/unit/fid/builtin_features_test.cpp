// The built-in score on generated shapes: what is worse has a larger distance.
#include "lockstep/fid/builtin_features.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "lockstep/datasets/images/shapes.h"
#include "lockstep/fid/frechet.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr int64_t kCount = 1000;
// Several times what two sets of real images differ by.
constexpr double kClear = 5;

struct Images {
  Tensor images;  // uint8
  Tensor labels;
};

Images shapes(uint64_t seed, int64_t count, int64_t side = 32) {
  const images::Shapes data({.num_samples = count, .side = side, .seed = seed});
  std::vector<Tensor> images;
  std::vector<Tensor> labels;
  for (int64_t i = 0; i < count; ++i) {
    const Sample sample = data.get(i, 0);
    images.push_back(sample[0]);
    labels.push_back(sample[1]);
  }
  return {.images = torch::stack(images), .labels = torch::stack(labels)};
}

Tensor to_levels(const Tensor& values) {
  return values.round().clamp(0, 255).to(torch::kByte);
}

Tensor with_noise(const Tensor& images, double deviation) {
  const Tensor values = images.to(torch::kFloat);
  return to_levels(values + deviation * torch::randn_like(values));
}

Tensor blurred(const Tensor& images, int64_t times) {
  Tensor values = images.to(torch::kFloat);
  for (int64_t i = 0; i < times; ++i) {
    values = at::avg_pool2d(values, {3, 3}, {1, 1}, {1, 1}, false, false);
  }
  return to_levels(values);
}

// Every colour moves towards grey.
Tensor faded(const Tensor& images, double part) {
  const Tensor values = images.to(torch::kFloat);
  return to_levels(values + part * (values.mean(1, true) - values));
}

// All images get more red.
Tensor reddened(const Tensor& images, double levels) {
  const Tensor red = torch::tensor({levels, 0.0, 0.0}).view({3, 1, 1});
  return to_levels(images.to(torch::kFloat) + red);
}

fid::FeatureStatistics statistics(const Tensor& images) {
  fid::BuiltinFeatures net;
  fid::FeatureSums sums = fid::empty_sums(net.width(), images.device());
  fid::add_features(sums, net.features(images));
  return fid::statistics_of(sums);
}

// A set of real images, and a second one to be changed.
class BuiltinScore : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(1); }

  double distance(const Tensor& images) const {
    return fid::frechet_distance(real_, statistics(images));
  }
  // Larger with every strength than with the one before; from the second on
  // clearly larger than between real ones.
  void expect_growing(
      const std::function<Tensor(const Tensor&, double)>& change,
      const std::vector<double>& strengths) const {
    double last = near_;
    for (size_t i = 0; i < strengths.size(); ++i) {
      const double now = distance(change(other_.images, strengths[i]));
      EXPECT_GT(now, last) << strengths[i];
      if (i > 0) {
        EXPECT_GT(now, kClear * near_) << strengths[i];
      }
      last = now;
    }
  }

  const fid::FeatureStatistics real_ = statistics(shapes(1, kCount).images);
  const Images other_ = shapes(2, kCount);
  const double near_ = distance(other_.images);
};

TEST_F(BuiltinScore, OtherRealImagesAreNearAndNoiseIsFar) {
  const Tensor noise = torch::randint(256, other_.images.sizes(), torch::kByte);
  EXPECT_GT(distance(noise), 500 * near_);
  EXPECT_LT(fid::frechet_distance(real_, real_), 1e-9 * near_);
}

TEST_F(BuiltinScore, GrowsWithNoise) {
  expect_growing(with_noise, {8, 20, 32, 64, 128});
}

TEST_F(BuiltinScore, GrowsWithBlur) {
  EXPECT_GT(distance(blurred(other_.images, 1)), kClear * near_);
  expect_growing(blurred, {1, 2, 4, 8});
}

TEST_F(BuiltinScore, GrowsWithWrongColours) {
  expect_growing(faded, {0.1, 0.3, 0.5, 1});
  expect_growing(reddened, {20, 60, 80});
}

TEST_F(BuiltinScore, SeesThatShapesAreMissing) {
  const auto without = [this](int64_t num_missing) {
    const int64_t num_left = images::Shapes::kNumClasses - num_missing;
    const Tensor left = torch::nonzero(other_.labels < num_left).squeeze(1);
    return distance(other_.images.index_select(0, left));
  };
  EXPECT_GT(without(5), 2 * near_);
  EXPECT_GT(without(8), without(5));
}

TEST(BuiltinFeatures, DoNotDependOnTheBatch) {
  fid::BuiltinFeatures net;
  const Tensor images = shapes(3, 100).images;
  const Tensor together = net.features(images);
  ASSERT_EQ(together.sizes(), (std::vector<int64_t>{100, net.width()}));
  std::vector<Tensor> parts;
  for (const Tensor& part : images.split(7)) {
    parts.push_back(net.features(part));
  }
  EXPECT_TRUE(torch::allclose(torch::cat(parts), together, 1e-5, 1e-5));
}

TEST(BuiltinFeatures, TakeImagesOfAnySize) {
  fid::BuiltinFeatures net;
  const Tensor small = net.features(shapes(4, 20, 32).images);
  const Tensor large = net.features(shapes(4, 20, 128).images);
  const Tensor others = net.features(shapes(5, 20, 32).images);
  EXPECT_LT((large - small).norm().item<double>(),
            0.2 * (others - small).norm().item<double>());
  EXPECT_EQ(net.features(torch::zeros({2, 3, 7, 50}, torch::kByte)).sizes(),
            (std::vector<int64_t>{2, net.width()}));
  EXPECT_EQ(net.features(torch::zeros({0, 3, 9, 9}, torch::kByte)).size(0), 0);
}

// Scores of other versions can be compared as long as the id is the same.
TEST(BuiltinFeatures, StayWhatTheyAre) {
  fid::BuiltinFeatures net;
  EXPECT_EQ(net.id(), "builtin-1");
  EXPECT_EQ(net.name(), "fd_builtin");
  const Tensor levels = torch::arange(3 * 32 * 32).remainder(251);
  const Tensor features =
      net.features(levels.view({1, 3, 32, 32}).to(torch::kByte))[0];
  const std::vector<std::pair<int64_t, double>> expected = {
      {0, -0.0373008437}, {3, 0.332399756},  {6, 0.0724351108},
      {9, 0.133048922},   {10, 0.474161148}, {57, 1.06574249},
      {121, 0.789022624}, {185, 2.87510347}, {248, 5.17610455}};
  for (const auto& [place, value] : expected) {
    EXPECT_NEAR(features[place].item<double>(), value, 1e-5) << place;
  }
}

}  // namespace
}  // namespace lockstep

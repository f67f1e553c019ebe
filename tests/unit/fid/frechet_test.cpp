#include "lockstep/fid/frechet.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using torch::Tensor;

const c10::Device kCpu(c10::DeviceType::CPU);

fid::FeatureStatistics statistics_of_rows(const Tensor& rows) {
  fid::FeatureSums sums = fid::empty_sums(rows.size(1), kCpu);
  fid::add_features(sums, rows);
  return fid::statistics_of(sums);
}

fid::FeatureStatistics normal_distribution(const Tensor& mean,
                                           const Tensor& covariance) {
  return {.mean = mean.to(torch::kDouble),
          .covariance = covariance.to(torch::kDouble)};
}

// A turn of the axes: a distance must not depend on them.
Tensor rotation(int64_t width) {
  return std::get<0>(
      torch::linalg_qr(torch::randn({width, width}, torch::kDouble)));
}

// From the rows themselves: tr sqrt(C1 C2) is the sum of the singular values of
// X1 X2^T. Exact also where the covariances have no full rank.
double distance_of_rows(const Tensor& a, const Tensor& b) {
  const auto centred = [](const Tensor& rows) {
    return (rows - rows.mean(0)) /
           std::sqrt(static_cast<double>(rows.size(0) - 1));
  };
  const Tensor x = centred(a);
  const Tensor y = centred(b);
  const Tensor distance = (a.mean(0) - b.mean(0)).square().sum() +
                          x.square().sum() + y.square().sum() -
                          2 * torch::linalg_svdvals(x.mm(y.t())).sum();
  return distance.item<double>();
}

TEST(Frechet, StatisticsAreMeanAndCovariance) {
  torch::manual_seed(1);
  const Tensor rows = 0.4 + 0.3 * torch::randn({300, 64}, torch::kDouble);
  const fid::FeatureStatistics statistics = statistics_of_rows(rows);
  EXPECT_EQ(statistics.count, 300);
  EXPECT_TRUE(torch::allclose(statistics.mean, rows.mean(0), 0, 1e-14));
  EXPECT_TRUE(
      torch::allclose(statistics.covariance, torch::cov(rows.t()), 0, 1e-14));
}

TEST(Frechet, SumsOfBatchesAndRanksAreAdded) {
  torch::manual_seed(2);
  const Tensor rows = torch::rand({100, 16});
  const fid::FeatureStatistics whole = statistics_of_rows(rows);
  fid::FeatureSums first = fid::empty_sums(16, kCpu);
  fid::FeatureSums second = fid::empty_sums(16, kCpu);
  fid::add_features(first, rows.slice(0, 0, 37));
  fid::add_features(second, rows.slice(0, 37, 38));
  fid::add_features(second, rows.slice(0, 38, 100));
  fid::add_features(second, rows.slice(0, 100));  // No images.
  const fid::FeatureStatistics added =
      fid::statistics_of({.count = first.count + second.count,
                          .sum = first.sum + second.sum,
                          .outer = first.outer + second.outer});
  EXPECT_EQ(added.count, 100);
  EXPECT_TRUE(torch::allclose(added.mean, whole.mean, 0, 1e-14));
  EXPECT_TRUE(torch::allclose(added.covariance, whole.covariance, 0, 1e-14));
}

TEST(Frechet, EqualStatisticsHaveNoDistance) {
  torch::manual_seed(3);
  for (const int64_t count : {1000, 20}) {
    const auto statistics = statistics_of_rows(torch::rand({count, 100}));
    const double distance = fid::frechet_distance(statistics, statistics);
    EXPECT_GE(distance, 0);
    EXPECT_LT(distance, 1e-12) << count;
  }
}

TEST(Frechet, IndependentFeaturesHaveAClosedForm) {
  torch::manual_seed(4);
  const Tensor m1 = torch::randn({50}, torch::kDouble);
  const Tensor m2 = torch::randn({50}, torch::kDouble);
  const Tensor s1 = torch::rand({50}, torch::kDouble);
  const Tensor s2 = torch::rand({50}, torch::kDouble);
  const double expected =
      ((m1 - m2).square() + (s1 - s2).square()).sum().item<double>();
  const Tensor turn = rotation(50);
  const auto turned = [&turn](const Tensor& mean, const Tensor& deviation) {
    return normal_distribution(turn.mv(mean),
                               turn.mm(deviation.square().diag()).mm(turn.t()));
  };
  EXPECT_NEAR(fid::frechet_distance(turned(m1, s1), turned(m2, s2)), expected,
              1e-12 * expected);
}

TEST(Frechet, FewerImagesThanFeaturesAreExactToo) {
  torch::manual_seed(5);
  const Tensor mixing = torch::rand({200, 200}, torch::kDouble) / 200;
  const auto rows = [&mixing](int64_t count, double shift) {
    return shift + torch::rand({count, 200}, torch::kDouble).mm(mixing);
  };
  for (const auto& [first, second] :
       {std::pair(30, 50), std::pair(30, 1000), std::pair(2, 3)}) {
    const Tensor a = rows(first, 0.4);
    const Tensor b = rows(second, 0.41);
    const double expected = distance_of_rows(a, b);
    const auto ours = statistics_of_rows(a);
    const auto theirs = statistics_of_rows(b);
    EXPECT_NEAR(fid::frechet_distance(ours, theirs), expected, 1e-9 * expected);
    EXPECT_NEAR(fid::frechet_distance(theirs, ours), expected, 1e-9 * expected);
  }
}

TEST(Frechet, ImagesThatAreAllEqualGiveADistance) {
  const auto grey = statistics_of_rows(torch::full({10, 8}, 0.5));
  const auto black = statistics_of_rows(torch::zeros({10, 8}));
  EXPECT_NEAR(fid::frechet_distance(grey, black), 8 * 0.25, 1e-12);
  EXPECT_EQ(fid::frechet_distance(black, black), 0);
}

TEST(Frechet, WhatCannotBeComparedIsAnError) {
  fid::FeatureSums sums = fid::empty_sums(4, kCpu);
  EXPECT_THROW(fid::statistics_of(sums), ConfigError);
  fid::add_features(sums, torch::rand({1, 4}));
  EXPECT_THROW(fid::statistics_of(sums), ConfigError);
  EXPECT_THROW(fid::add_features(sums, torch::rand({1, 5})), ConfigError);
  EXPECT_THROW(fid::add_features(sums, torch::rand({4})), ConfigError);
  const auto four = normal_distribution(torch::zeros({4}), torch::eye(4));
  const auto five = normal_distribution(torch::zeros({5}), torch::eye(5));
  EXPECT_THROW(fid::frechet_distance(four, five), ConfigError);
  auto broken = normal_distribution(torch::zeros({4}), torch::eye(4));
  broken.covariance[1][2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(fid::frechet_distance(four, broken), ConfigError);
}

}  // namespace
}  // namespace lockstep

#include "lockstep/metrics.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <bit>
#include <random>

#include "lockstep/base/environment.h"
#include "lockstep/error.h"
#include "lockstep/world.h"
#include "support/messages.h"

namespace lockstep {
namespace {

TEST(ExactSum, KnowsTheHardCases) {
  EXPECT_EQ(exact_sum({}), 0);
  EXPECT_EQ(exact_sum({1, 1e100, 1, -1e100}), 2);
  EXPECT_EQ(exact_sum(std::vector<double>(10, 0.1)), 1);
  EXPECT_EQ(exact_sum({1e16, 1, 1e-16}), std::nextafter(1e16, 2e16));
  EXPECT_EQ(exact_sum({1e16, 1}), 1e16);  // A tie goes to the even one.
  EXPECT_EQ(exact_sum({1e16, 1, -1e-16}), 1e16);
  EXPECT_EQ(exact_sum({5e-324, 5e-324, -5e-324}), 5e-324);
  EXPECT_EQ(exact_sum({1e308, -1e308, 1e-308, -1e-308, 3}), 3);
  EXPECT_EQ(exact_sum({0x1p53, 1, 0x1p-53, 0x1p-90, -0x1p53}), 1 + 0x1p-52);
}

// Multiples of 2^-40 below 2^40: 128-bit integers hold all sums exactly.
TEST(ExactSum, AgreesWithIntegers) {
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<double> values;
    __int128 sum = 0;
    for (int i = 0; i < 50; ++i) {
      // 53 bits at a random height, so that most of them are lost in a float
      // sum.
      const auto bits = static_cast<int64_t>(random() >> 11);
      const int shift = static_cast<int>(random() % 30);
      const int64_t sign = (random() & 1) != 0 ? 1 : -1;
      values.push_back(std::ldexp(static_cast<double>(sign * bits), shift));
      sum += static_cast<__int128>(sign * bits) << shift;
    }
    EXPECT_EQ(exact_sum(values), static_cast<double>(sum));
  }
}

TEST(ExactSum, DoesNotDependOnTheOrder) {
  std::mt19937_64 random(2);
  std::vector<double> values;
  for (int i = 0; i < 300; ++i) {
    values.push_back(std::ldexp(static_cast<double>(random()) - 0x1p63,
                                static_cast<int>(random() % 200) - 160));
  }
  const double expected = exact_sum(values);
  bool naive_differs = false;
  const double naive = std::accumulate(values.begin(), values.end(), 0.0);
  for (int turn = 0; turn < 20; ++turn) {
    std::shuffle(values.begin(), values.end(), random);
    EXPECT_EQ(std::bit_cast<uint64_t>(exact_sum(values)),
              std::bit_cast<uint64_t>(expected));
    naive_differs |=
        std::accumulate(values.begin(), values.end(), 0.0) != naive;
  }
  EXPECT_TRUE(naive_differs) << "the test's numbers are too easy";
}

TEST(ExactSum, WhatIsNotFiniteStaysSo) {
  EXPECT_TRUE(std::isnan(exact_sum({1, NAN, 2})));
  EXPECT_EQ(exact_sum({1, INFINITY}), INFINITY);
  EXPECT_TRUE(std::isnan(exact_sum({INFINITY, -INFINITY})));
}

TEST(MetricSums, AreMeansOfAllThatWasAdded) {
  const World world = World::from_environment({.device = DeviceChoice::kCpu},
                                              base::Environment{});
  MetricSums sums;
  sums.add("loss", torch::tensor({1.5, 2.5}), 2);
  sums.add("accuracy", torch::tensor({true, false, true}), 3);
  sums.add("loss", torch::tensor({{2.0F}}), 1);
  sums.add("tokens", torch::tensor(6.0), torch::tensor(4));
  const Metrics metrics = sums.result(world);
  ASSERT_EQ(metrics.size(), 3U);
  EXPECT_EQ(metrics[0].first, "loss");  // In the order of their first add().
  EXPECT_EQ(*find_metric(metrics, "loss"), 2.0);
  EXPECT_EQ(*find_metric(metrics, "accuracy"), 2.0 / 3);
  EXPECT_EQ(*find_metric(metrics, "tokens"), 1.5);
  EXPECT_EQ(find_metric(metrics, "los"), nullptr);
}

TEST(MetricSums, NothingCountedIsNan) {
  const World world = World::from_environment({.device = DeviceChoice::kCpu},
                                              base::Environment{});
  MetricSums sums;
  sums.add("empty", torch::zeros({0}), 0);
  sums.add("broken", torch::tensor({1.0, std::nan("")}), 2);
  const Metrics metrics = sums.result(world);
  EXPECT_TRUE(std::isnan(*find_metric(metrics, "empty")));
  EXPECT_TRUE(std::isnan(*find_metric(metrics, "broken")));
  EXPECT_TRUE(MetricSums().result(world).empty());
}

TEST(MetricSums, TermsOfALossAddUpToIt) {
  MetricSums sums;
  const auto number = [](double value) { return torch::full({}, value); };
  sums.add_term({"a", 2, number(3), number(2)});
  sums.add_term({"b", 10, number(1), number(4)});
  sums.add_term({"nothing", 5, number(0), number(0)});
  sums.add_term({"a", 2, number(5), number(2)});
  const Metrics metrics = sums.result(World::from_environment());
  ASSERT_EQ(metrics.size(), 4U);
  EXPECT_EQ(metrics[0].first, "loss");
  EXPECT_DOUBLE_EQ(metrics[0].second, 2 * 2.0 + 10 * 0.25);
  EXPECT_DOUBLE_EQ(*find_metric(metrics, "a"), 2);
  EXPECT_DOUBLE_EQ(*find_metric(metrics, "b"), 0.25);
  EXPECT_TRUE(std::isnan(*find_metric(metrics, "nothing")));
}

TEST(MetricSums, CountsAreAddedElementByElement) {
  MetricSums sums;
  const at::Tensor first = torch::tensor({{1, 2}, {3, 4}}, torch::kLong);
  sums.add_counts("confusion", first);
  sums.add_counts("confusion", first * 10);
  const MetricCounts counts = sums.counts(World::from_environment());
  EXPECT_TRUE(torch::equal(counts.at("confusion"), first * 11));
  EXPECT_TRUE(torch::equal(first, torch::tensor({{1, 2}, {3, 4}})));
}

TEST(MetricSums, CountsOfAnotherTypeOrShapeAreRefused) {
  MetricSums sums;
  const auto refused = [&](const at::Tensor& counts) {
    return testing::refusal<Error>(
        [&] { sums.add_counts("confusion", counts); });
  };
  EXPECT_EQ(refused(torch::zeros({4})),
            "add_counts(\"confusion\"): counts must be int64, not float");
  sums.add_counts("confusion", torch::zeros({4}, torch::kLong));
  EXPECT_EQ(refused(torch::zeros({3}, torch::kLong)),
            "add_counts(\"confusion\"): shape [3], but [4] before");
}

}  // namespace
}  // namespace lockstep

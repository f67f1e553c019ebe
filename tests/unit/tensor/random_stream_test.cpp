#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/random.h"

namespace lockstep {
namespace {

TEST(RandomStream, DrawsStayTheSameForEver) {
  // Values of tests/interop/python/philox.py.
  RandomStream random(sample_seed(7, 3, 12345), 5);
  EXPECT_EQ(random.bits(), 0xa11ce4c1u);
  EXPECT_EQ(random.uniform(), 0x1.5301289331faap-2);
  EXPECT_EQ(random.uniform_float(), 0x1.61d62cp-2F);
  EXPECT_EQ(random.integer(1000), 418);
  EXPECT_EQ(random.integer(int64_t{3} << 61), 6329252376547138511);
  EXPECT_EQ(random.normal(), 0x1.463fde741b41bp-1);
  EXPECT_FALSE(random.chance(0.5));
  std::vector<int> order(10);
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  EXPECT_EQ(order, (std::vector<int>{3, 4, 6, 5, 7, 2, 1, 0, 8, 9}));
}

TEST(RandomStream, SeedsAndStreamsDiffer) {
  std::map<uint32_t, int> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (uint64_t stream = 0; stream < 100; ++stream) {
      ++seen[RandomStream(seed, stream).bits()];
    }
  }
  // 10^4 draws of 2^32 values: about 0.01 pairs are equal by chance.
  EXPECT_GE(seen.size(), 9998u);
}

TEST(RandomStream, UniformsFillTheRangeEvenly) {
  RandomStream random(1);
  constexpr int kDraws = 100000;
  constexpr int kBins = 100;
  std::vector<int> bins(kBins);
  std::vector<int> float_bins(kBins);
  for (int i = 0; i < kDraws; ++i) {
    ++bins.at(static_cast<size_t>(random.uniform() * kBins));
    ++float_bins.at(static_cast<size_t>(random.uniform_float() * kBins));
  }
  // Five deviations of a bin's count.
  for (const int count : bins) EXPECT_NEAR(count, 1000, 5 * 31.5);
  for (const int count : float_bins) EXPECT_NEAR(count, 1000, 5 * 31.5);
}

TEST(RandomStream, IntegersAreEquallyLikely) {
  RandomStream random(2);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) {
    ++counts.at(static_cast<size_t>(random.integer(7)));
  }
  for (const int count : counts) EXPECT_NEAR(count, 10000, 5 * 92.6);
}

TEST(RandomStream, IntegersOfAHugeRangeAreEquallyLikely) {
  // The remainder of 64 bits alone would give the first third 3/8 of the draws.
  RandomStream random(3);
  constexpr int64_t kThird = int64_t{1} << 61;
  int in_first_third = 0;
  for (int i = 0; i < 30000; ++i) {
    in_first_third += random.integer(3 * kThird) < kThird ? 1 : 0;
  }
  EXPECT_NEAR(in_first_third, 10000, 5 * 81.7);
}

TEST(RandomStream, AnIntegerBelowNothingIsAnError) {
  RandomStream random(4);
  EXPECT_EQ(random.integer(1), 0);
  EXPECT_THROW(random.integer(0), ConfigError);
  EXPECT_THROW(random.integer(-5), ConfigError);
}

TEST(RandomStream, NormalsHaveTheMomentsOfTheNormalDistribution) {
  RandomStream random(5);
  constexpr int kDraws = 200000;
  double sum = 0;
  double squares = 0;
  double fourth_powers = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
    fourth_powers += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 5 * std::sqrt(1.0 / kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourth_powers / kDraws, 3, 5 * std::sqrt(96.0 / kDraws));
}

TEST(RandomStream, ChanceKeepsItsProbability) {
  RandomStream random(6);
  int hits = 0;
  for (int i = 0; i < 10000; ++i) {
    EXPECT_FALSE(random.chance(0));
    EXPECT_TRUE(random.chance(1));
    hits += random.chance(0.1) ? 1 : 0;
  }
  EXPECT_NEAR(hits, 1000, 5 * 30);
}

TEST(RandomStream, EveryOrderOfAShuffleIsEquallyLikely) {
  RandomStream random(7);
  std::map<std::vector<int>, int> seen;
  for (int i = 0; i < 24000; ++i) {
    std::vector<int> order = {0, 1, 2, 3};
    random.shuffle(order);
    ++seen[order];
  }
  EXPECT_EQ(seen.size(), 24u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 1000, 5 * 31);
}

}  // namespace
}  // namespace lockstep

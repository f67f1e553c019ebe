#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "lockstep/error.h"
#include "lockstep/random.h"

namespace lockstep {
namespace {

int64_t seed_of(int64_t index) {
  return static_cast<int64_t>(sample_seed(7, 3, index));
}

SampleRandom random_of(const std::vector<int64_t>& indices) {
  std::vector<int64_t> seeds;
  for (const int64_t index : indices) seeds.push_back(seed_of(index));
  return SampleRandom(torch::tensor(seeds, torch::kLong));
}

// One call of each kind; the last one tries a quarter of its draws again.
std::vector<at::Tensor> draw_all(SampleRandom random, at::IntArrayRef shape) {
  return {random.uniform(shape),
          random.normal(shape),
          random.uniform(shape, at::kDouble),
          random.normal(shape, at::kDouble),
          random.integers(1000, shape),
          random.integers(int64_t{3} << 61, shape)};
}

void expect_equal(const std::vector<at::Tensor>& a,
                  const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(torch::equal(a[i], b[i])) << "call " << i;
  }
}

// The largest distance between the draws' distribution and the normal one.
double distance_from_normal(const at::Tensor& draws) {
  const auto sorted = std::get<0>(draws.flatten().to(torch::kDouble).sort());
  const auto expected = 0.5 * (1 + torch::erf(sorted / std::sqrt(2.0)));
  const auto below = torch::arange(sorted.numel(), torch::kDouble);
  const auto n = static_cast<double>(sorted.numel());
  return std::max((expected - below / n).max().item<double>(),
                  ((below + 1) / n - expected).max().item<double>());
}

TEST(SampleRandom, DrawsStayTheSameForEver) {
  // Values of tests/interop/python/philox.py.
  auto random = random_of({12345, 12346});
  const auto row = [](const at::Tensor& draws) { return draws[1]; };
  EXPECT_TRUE(torch::equal(row(random.uniform({2})),
                           torch::tensor({0x1.c419a8p-1F, 0x1.d2b77p-1F})));
  EXPECT_TRUE(torch::equal(
      row(random.normal({3})),
      torch::tensor({0x1.c78bf6p-1F, 0x1.38629cp-6F, -0x1.e793c6p-2F})));
  EXPECT_TRUE(torch::equal(
      row(random.uniform({3}, at::kDouble)),
      torch::tensor(
          {0x1.ccede8d48ebe2p-2, 0x1.34078045def42p-2, 0x1.378b11bd4fe4cp-1},
          torch::kDouble)));
  EXPECT_TRUE(torch::equal(
      row(random.normal({3}, at::kDouble)),
      torch::tensor(
          {-0x1.2a70e9b666055p-4, -0x1.b0bc190b51bf6p-2, 0x1.630f65e778b8ap-7},
          torch::kDouble)));
  EXPECT_TRUE(torch::equal(row(random.integers(1000, {3})),
                           torch::tensor({437, 376, 779}, torch::kLong)));
  EXPECT_EQ(row(random.integers(int64_t{3} << 61, {6}))[2].item<int64_t>(),
            1223339561280534512);
}

TEST(SampleRandom, ARowDependsOnItsSeedAndCallAlone) {
  const auto whole = draw_all(random_of({0, 1, 2, 3, 4, 5, 6}), {3, 11});
  const auto others = draw_all(random_of({9, 5, 8}), {3, 11});
  const auto alone = draw_all(random_of({5}), {3, 11});
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(torch::equal(whole[i][5], others[i][1])) << "call " << i;
    EXPECT_TRUE(torch::equal(whole[i][5], alone[i][0])) << "call " << i;
  }
}

TEST(SampleRandom, ALongerSampleBeginsLikeAShorterOne) {
  const auto longer = draw_all(random_of({1, 2}), {1001});
  const auto shorter = draw_all(random_of({1, 2}), {7});
  for (size_t i = 0; i < longer.size(); ++i) {
    EXPECT_TRUE(torch::equal(longer[i].slice(1, 0, 7), shorter[i])) << i;
  }
}

TEST(SampleRandom, DoesNotDependOnThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = draw_all(random_of({1, 2, 3}), {100003});
  at::set_num_threads(4);
  const auto four = draw_all(random_of({1, 2, 3}), {100003});
  at::set_num_threads(before);
  expect_equal(one, four);
}

TEST(SampleRandom, EachCallDrawsAnew) {
  auto random = random_of({1, 2});
  const auto first = random.uniform({1000}, at::kDouble);
  const auto second = random.uniform({1000}, at::kDouble);
  EXPECT_FALSE((first == second).any().item<bool>());
  EXPECT_FALSE((first[0] == first[1]).any().item<bool>());
}

TEST(SampleRandom, SharesNoWordsWithTheRandomStreamOfTheSample) {
  RandomStream augmentation(static_cast<uint64_t>(seed_of(1)));
  const auto noise = random_of({1}).uniform({1000});
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    equal += noise[0][i].item<float>() == augmentation.uniform_float() ? 1 : 0;
  }
  EXPECT_EQ(equal, 0);
}

TEST(SampleRandom, UniformsAreEvenAndBelowOne) {
  auto random = random_of({1, 2, 3, 4});
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const auto x = random.uniform({250000}, dtype).to(torch::kDouble);
    EXPECT_GE(x.min().item<double>(), 0);
    EXPECT_LT(x.max().item<double>(), 1);
    EXPECT_NEAR(x.mean().item<double>(), 0.5, 5 * std::sqrt(1 / 12e6));
    EXPECT_NEAR(x.var().item<double>(), 1 / 12.0, 5 * std::sqrt(1 / 180e6));
    const auto bins = torch::histc(x, 100, 0, 1);
    EXPECT_LT((bins - 10000).abs().max().item<double>(), 5 * 99.5);
  }
}

TEST(SampleRandom, NormalsFollowTheNormalDistribution) {
  auto random = random_of({1, 2, 3, 4});
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const auto x = random.normal({250000}, dtype).to(torch::kDouble);
    EXPECT_NEAR(x.mean().item<double>(), 0, 5e-3);
    EXPECT_NEAR(x.var().item<double>(), 1, 5 * std::sqrt(2e-6));
    EXPECT_NEAR(x.pow(4).mean().item<double>(), 3, 5 * std::sqrt(96e-6));
    // Kolmogorov-Smirnov: a larger distance has a chance of 0.1 percent.
    EXPECT_LT(distance_from_normal(x), 1.95 / std::sqrt(1e6));
    // The two numbers of a pair.
    const auto pairs = x.view({-1, 2});
    const auto product = (pairs.select(1, 0) * pairs.select(1, 1)).mean();
    EXPECT_NEAR(product.item<double>(), 0, 5 * std::sqrt(2e-6));
  }
}

TEST(SampleRandom, IntegersAreEquallyLikely) {
  auto random = random_of({1, 2, 3, 4});
  const auto small = random.integers(7, {17500}).flatten();
  const auto counts = torch::bincount(small, {}, 7);
  EXPECT_EQ(counts.numel(), 7);
  EXPECT_LT((counts - 10000).abs().max().item<int64_t>(), 5 * 92);
  // The remainder of 64 bits alone would give the first third 3/8 of the draws.
  const int64_t third = int64_t{1} << 61;
  const auto huge = random.integers(3 * third, {7500});
  EXPECT_NEAR((huge < third).sum().item<double>(), 10000, 5 * 81.7);
}

TEST(SampleRandom, HalfTypesAreRoundedFloats) {
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    auto random = random_of({1, 2});
    auto as_float = random_of({1, 2});
    EXPECT_TRUE(torch::equal(random.uniform({99}, dtype),
                             as_float.uniform({99}).to(dtype)));
    EXPECT_TRUE(torch::equal(random.normal({99}, dtype),
                             as_float.normal({99}).to(dtype)));
  }
}

TEST(SampleRandom, ShapesMayBeEmpty) {
  auto random = random_of({1, 2});
  EXPECT_EQ(random.normal({}).sizes(), (std::vector<int64_t>{2}));
  EXPECT_EQ(random.normal({3, 0}).sizes(), (std::vector<int64_t>{2, 3, 0}));
  EXPECT_EQ(random_of({}).normal({3}).sizes(), (std::vector<int64_t>{0, 3}));
}

TEST(SampleRandom, WrongArgumentsAreErrors) {
  EXPECT_THROW(SampleRandom(torch::zeros({3})), ConfigError);
  EXPECT_THROW(SampleRandom(torch::zeros({3, 1}, torch::kLong)), ConfigError);
  auto random = random_of({1});
  EXPECT_THROW(random.integers(0, {1}), ConfigError);
  EXPECT_THROW(random.uniform({1}, at::kInt), ConfigError);
  EXPECT_THROW(random.normal({1}, at::kLong), ConfigError);
}

}  // namespace
}  // namespace lockstep

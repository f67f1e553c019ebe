#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "lockstep/error.h"
#include "lockstep/nn/rope_tables.h"

namespace lockstep {
namespace {

TEST(GridRope, RotatesByTheRowFirstAndThenByTheColumn) {
  const auto table =
      nn::grid_rope_table(
          {.rows = 3, .columns = 3, .head_size = 8, .num_context = 2})
          .complex.squeeze(1);
  ASSERT_EQ(table.sizes(), (std::vector<int64_t>{11, 4}));
  EXPECT_TRUE(torch::equal(table.slice(0, 0, 2),
                           torch::ones({2, 4}, torch::kComplexDouble)));
  // Row 1, column 2; frequencies 1 and 1/100.
  const auto angles = torch::tensor({1.0, 0.01, 2.0, 0.02}, torch::kDouble);
  EXPECT_TRUE(torch::allclose(torch::view_as_real(table[2 + 5]),
                              torch::stack({angles.cos(), angles.sin()}, 1)));
}

TEST(GridRope, RefusesHeadsThatFourDoesNotDivide) {
  EXPECT_THROW(nn::grid_rope_table({.head_size = 6}), ConfigError);
}

TEST(Rope, RotatesNeighbouringChannels) {
  const double angle = 0.3;
  const kernels::RopeTable table{
      .pairs = kernels::RopePairs::kInterleaved,
      .complex = torch::polar(torch::ones({1, 1, 2}, torch::kDouble),
                              torch::tensor({{{angle, 0.0}}}, torch::kDouble))};
  const auto x = torch::tensor({{{1.0, 2.0, 3.0, 4.0}}}, torch::kDouble);
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  EXPECT_TRUE(torch::allclose(
      kernels::apply_rope(x, table),
      torch::tensor({{{c - 2 * s, 2 * c + s, 3.0, 4.0}}}, torch::kDouble)));
}

// The kinds differ in the order of channels only.
TEST(Rope, AllPairsRotateAlike) {
  nn::GridRopeConfig config{.rows = 2, .columns = 3, .head_size = 8};
  const auto x = torch::randn({6, 2, 8}, torch::kDouble);
  const auto expected = kernels::apply_rope(x, nn::grid_rope_table(config));
  const auto half_by_half = [](const at::Tensor& y) {  // 0 1 2 3 -> 0 2 1 3
    return y.unflatten(-1, {2, 2, 2}).transpose(-1, -2).flatten(-3);
  };
  config.pairs = kernels::RopePairs::kAxialHalves;
  EXPECT_TRUE(
      torch::allclose(half_by_half(kernels::apply_rope(
                          half_by_half(x), nn::grid_rope_table(config))),
                      expected));

  const kernels::RopeTable sequence =
      nn::sequence_rope_table(torch::tensor({1.0, 0.1}, torch::kDouble), 6);
  const auto y = x.slice(-1, 0, 4);
  const auto angles = torch::outer(torch::arange(6, torch::kDouble),
                                   torch::tensor({1.0, 0.1}, torch::kDouble))
                          .unsqueeze(1);
  const kernels::RopeTable interleaved{
      .pairs = kernels::RopePairs::kInterleaved,
      .complex = torch::polar(torch::ones_like(angles), angles)};
  const auto swapped = [](const at::Tensor& z) {
    return z.unflatten(-1, {2, 2}).transpose(-1, -2).flatten(-2);
  };
  EXPECT_TRUE(
      torch::allclose(swapped(kernels::apply_rope(swapped(y), sequence)),
                      kernels::apply_rope(y.contiguous(), interleaved)));
}

TEST(Rope, ProductsDependOnDistancesAlone) {
  const kernels::RopeTable table =
      nn::grid_rope_table({.rows = 4, .columns = 4, .head_size = 8});
  const auto q = torch::randn({1, 1, 8}, torch::kDouble);
  const auto k = torch::randn({1, 1, 8}, torch::kDouble);
  const auto product = [&](int64_t from, int64_t to) {
    return (kernels::apply_rope(
                q, kernels::slice_positions(table, from, from + 1)) *
            kernels::apply_rope(k, kernels::slice_positions(table, to, to + 1)))
        .sum()
        .item<double>();
  };
  // One row down, two columns to the right.
  EXPECT_NEAR(product(0, 6), product(9, 15), 1e-12);
  EXPECT_GT(std::abs(product(0, 6) - product(0, 9)), 1e-6);
}

}  // namespace
}  // namespace lockstep

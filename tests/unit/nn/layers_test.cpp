#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/nn/attention.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/norm.h"

namespace lockstep {
namespace {

TEST(RmsNorm, GivesTokensOfLengthRootOfTheirWidth) {
  const auto x = torch::randn({2, 3, 16}) * 7;
  const auto y = rms_norm(x, torch::full({1}, 0.5));
  EXPECT_TRUE(torch::allclose(y.norm(2, -1), torch::full({2, 3}, 0.5 * 4)));
}

TEST(RmsNorm, OfZerosIsZeroAndHasAFiniteGradient) {
  const auto x = torch::zeros({1, 1, 4}, torch::requires_grad());
  const auto y = rms_norm(x, torch::ones({4}));
  y.sum().backward();
  EXPECT_EQ(y.abs().sum().item<float>(), 0);
  EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
}

TEST(Modulate, ScalesAndShiftsAllTokensOfASample) {
  const auto x = torch::ones({2, 3, 1});
  const auto y = modulate(x, {.shift = torch::tensor({{10.0F}, {20.0F}}),
                              .scale = torch::tensor({{1.0F}, {2.0F}})});
  EXPECT_TRUE(torch::equal(
      y.select(2, 0),
      torch::tensor({{12.0F, 12.0F, 12.0F}, {23.0F, 23.0F, 23.0F}})));
}

TEST(GridPositionEmbedding, HasTheColumnInTheFirstHalfAndTheRowInTheSecond) {
  const auto table = grid_position_embedding(/*side=*/3, /*width=*/8);
  ASSERT_EQ(table.sizes(), (std::vector<int64_t>{9, 8}));
  // Row 1, column 2; frequencies 1 and 1/100.
  const auto place = table[5];
  const std::vector<double> expected = {
      std::sin(2), std::sin(0.02), std::cos(2), std::cos(0.02),
      std::sin(1), std::sin(0.01), std::cos(1), std::cos(0.01)};
  EXPECT_TRUE(torch::allclose(place, torch::tensor(expected).to(at::kFloat)));
}

TEST(GridPositionEmbedding, RefusesAWidthThatFourDoesNotDivide) {
  EXPECT_THROW(grid_position_embedding(2, 6), ConfigError);
}

TEST(TimeEmbedding, HasCosinesFirst) {
  const auto t = torch::tensor({0.5});
  const auto y = time_embedding(t, {.width = 4, .max_period = 10});
  const double slow = 0.5 / std::sqrt(10.0);
  EXPECT_TRUE(torch::allclose(
      y, torch::tensor(
             {{std::cos(0.5), std::cos(slow), std::sin(0.5), std::sin(slow)}})
             .to(at::kFloat)));
}

TEST(SelfAttention, IsTheWeightedMeanOfTheValuesOfEachHead) {
  SelfAttention attention({.width = 8, .num_heads = 2});
  const auto x = torch::randn({2, 5, 8});
  const auto parameters = attention.named_parameters();
  const auto qkv =
      torch::linear(x, parameters["qkv.weight"], parameters["qkv.bias"])
          .view({2, 5, 3, 2, 4});
  std::vector<at::Tensor> heads;
  for (int64_t head = 0; head < 2; ++head) {
    const auto part = [&](int64_t which) {
      return qkv.select(2, which).select(2, head);
    };
    const auto weights =
        (part(0).matmul(part(1).transpose(1, 2)) / 2).softmax(-1);
    heads.push_back(weights.matmul(part(2)));
  }
  const auto expected = torch::linear(
      torch::cat(heads, 2), parameters["proj.weight"], parameters["proj.bias"]);
  EXPECT_TRUE(torch::allclose(attention.forward(x), expected, 1e-5, 1e-6));
}

}  // namespace
}  // namespace lockstep

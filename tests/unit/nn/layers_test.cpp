#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "lockstep/error.h"
#include "lockstep/nn/attention.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/mlp.h"
#include "lockstep/nn/norm.h"
#include "lockstep/nn/patches.h"
#include "lockstep/nn/rope.h"

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

TEST(RmsNormLayer, DividesByTheRootOfTheMeanSquareAndWeighsChannels) {
  RmsNorm norm(8, /*eps=*/0.5);
  const torch::NoGradGuard no_grad;
  norm.parameters()[0].uniform_(-2, 2);
  const auto x = torch::randn({2, 3, 8}) * 7;
  const auto expected = x / (x.square().mean(-1, true) + 0.5).sqrt() *
                        norm.named_parameters()["weight"];
  EXPECT_TRUE(torch::allclose(norm.forward(x), expected, 1e-6, 1e-6));
}

TEST(RmsNormLayer, ComputesInTheTypeOfItsWeight) {
  RmsNorm norm(16);
  const auto x = torch::randn({4, 16}).to(torch::kBFloat16);
  const auto y = norm.forward(x);
  EXPECT_EQ(y.scalar_type(), torch::kFloat);
  EXPECT_TRUE(torch::equal(y, norm.forward(x.to(torch::kFloat))));
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

TEST(GridRope, TurnsByTheRowFirstAndThenByTheColumn) {
  const auto table =
      grid_rotations({.side = 3, .head_size = 8, .num_context = 2});
  ASSERT_EQ(table.sizes(), (std::vector<int64_t>{11, 4}));
  EXPECT_TRUE(torch::equal(table.slice(0, 0, 2),
                           torch::ones({2, 4}, torch::kComplexDouble)));
  // Row 1, column 2; speeds 1 and 1/100.
  const auto angles = torch::tensor({1.0, 0.01, 2.0, 0.02}, torch::kDouble);
  EXPECT_TRUE(torch::allclose(torch::view_as_real(table[2 + 5]),
                              torch::stack({angles.cos(), angles.sin()}, 1)));
}

TEST(GridRope, TurnsNeighbouringChannels) {
  const double angle = 0.3;
  const auto turn = torch::polar(torch::ones({1, 2}, torch::kDouble),
                                 torch::tensor({{angle, 0.0}}, torch::kDouble));
  const auto x = torch::tensor({{1.0, 2.0, 3.0, 4.0}}, torch::kDouble);
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  EXPECT_TRUE(torch::allclose(
      apply_rope(x, turn),
      torch::tensor({{c - 2 * s, 2 * c + s, 3.0, 4.0}}, torch::kDouble)));
}

TEST(GridRope, ProductsDependOnDistancesAlone) {
  const auto table = grid_rotations({.side = 4, .head_size = 8});
  const auto q = torch::randn({8}, torch::kDouble);
  const auto k = torch::randn({8}, torch::kDouble);
  const auto product = [&](int64_t from, int64_t to) {
    return (apply_rope(q.unsqueeze(0), table.slice(0, from, from + 1)) *
            apply_rope(k.unsqueeze(0), table.slice(0, to, to + 1)))
        .sum()
        .item<double>();
  };
  // One row down, two columns to the right.
  EXPECT_NEAR(product(0, 6), product(9, 15), 1e-12);
  EXPECT_GT(std::abs(product(0, 6) - product(0, 9)), 1e-6);
}

TEST(GridRope, RefusesHeadsThatFourDoesNotDivide) {
  EXPECT_THROW(grid_rotations({.side = 2, .head_size = 6}), ConfigError);
}

TEST(SwiGlu, GatesTheSecondHalfByTheFirst) {
  SwiGlu mlp({.width = 4, .hidden = 3});
  const auto x = torch::randn({2, 4});
  const auto all = mlp.named_parameters();
  const auto both = torch::linear(x, all["w12.weight"], all["w12.bias"]);
  const auto a = both.slice(1, 0, 3);
  const auto expected = torch::linear(a * a.sigmoid() * both.slice(1, 3),
                                      all["w3.weight"], all["w3.bias"]);
  EXPECT_TRUE(torch::allclose(mlp.forward(x), expected, 1e-5, 1e-6));
}

TEST(Dropout, ActsWhileTrainingOnly) {
  SwiGlu mlp({.width = 8, .hidden = 6, .dropout = 0.5});
  SelfAttention weights({.width = 8, .num_heads = 2, .attn_dropout = 0.5});
  SelfAttention leaving({.width = 8, .num_heads = 2, .proj_dropout = 0.5});
  const auto x = torch::randn({2, 5, 8});
  const auto repeats = [&](auto& layer) {
    return torch::equal(layer.forward(x), layer.forward(x));
  };
  EXPECT_FALSE(repeats(mlp) || repeats(weights) || repeats(leaving));
  for (torch::nn::Module* layer :
       std::initializer_list<torch::nn::Module*>{&mlp, &weights, &leaving}) {
    layer->eval();
  }
  EXPECT_TRUE(repeats(mlp) && repeats(weights) && repeats(leaving));
}

TEST(JoinPatches, PutsRowsColumnsAndChannelsOfAPatchInThisOrder) {
  // A number for each place: patch, row, column, channel.
  const auto patches = torch::arange(4 * 4 * 2).view({1, 4, 8});
  const auto image = join_patches(patches, {.patch = 2, .channels = 2})[0];
  ASSERT_EQ(image.sizes(), (std::vector<int64_t>{2, 4, 4}));
  // Patch 2 is the left one of the second row; in it row 1, column 0.
  EXPECT_EQ(image[1][3][0].item<int64_t>(), 2 * 8 + 1 * 4 + 0 * 2 + 1);
  EXPECT_EQ(image[0][0][3].item<int64_t>(), 1 * 8 + 0 * 4 + 1 * 2 + 0);
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

TEST(SelfAttention, NormsAndTurnsQueriesAndKeysOfEachHead) {
  SelfAttention attention(
      {.width = 16, .num_heads = 2, .qk_norm = QkNorm::kRms});
  const torch::NoGradGuard no_grad;
  for (auto& parameter : attention.parameters()) parameter.normal_(0, 0.5);
  const auto rotations =
      grid_rotations({.side = 2, .head_size = 8, .num_context = 1});
  const auto x = torch::randn({2, 5, 16});
  const auto all = attention.named_parameters();
  const auto qkv = torch::linear(x, all["qkv.weight"], all["qkv.bias"])
                       .view({2, 5, 3, 2, 8})
                       .to(torch::kDouble);
  const auto ready = [&](int64_t which, const std::string& norm, int64_t head) {
    const auto part = qkv.select(2, which).select(2, head);
    const auto normed = part / (part.square().mean(-1, true) + 1e-6).sqrt() *
                        all[norm + ".weight"];
    return apply_rope(normed, rotations);
  };
  std::vector<at::Tensor> heads;
  for (int64_t head = 0; head < 2; ++head) {
    const auto weights =
        (ready(0, "q_norm", head)
             .matmul(ready(1, "k_norm", head).transpose(1, 2)) /
         std::sqrt(8.0))
            .softmax(-1);
    heads.push_back(weights.matmul(qkv.select(2, 2).select(2, head)));
  }
  const auto expected = torch::linear(torch::cat(heads, 2).to(torch::kFloat),
                                      all["proj.weight"], all["proj.bias"]);
  EXPECT_TRUE(
      torch::allclose(attention.forward(x, rotations.to(torch::kComplexFloat)),
                      expected, 1e-4, 1e-5));
}

}  // namespace
}  // namespace lockstep

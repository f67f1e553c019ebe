#include "lockstep/nn/weights.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/nn/conv.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/norm.h"

namespace lockstep {
namespace {

nn::Linear uninitialised_linear(int64_t in, int64_t out) {
  const nn::UninitialisedWeights scope;
  return nn::Linear(in, out);
}

TEST(UninitialisedWeights, AModelOfAnySizeIsBuiltWithoutMemory) {
  // 4 TB, were it real.
  nn::Linear layer = uninitialised_linear(1'000'000, 1'000'000);
  EXPECT_EQ(layer->weight.sizes(), at::IntArrayRef({1000000, 1000000}));
  EXPECT_LE(layer->weight.storage().nbytes(), 4u);
}

TEST(UninitialisedWeights, EndWithTheirScope) {
  EXPECT_LE(uninitialised_linear(8, 8)->weight.storage().nbytes(), 4u);
  EXPECT_EQ(nn::Linear(8, 8)->weight.storage().nbytes(), 8u * 8 * 4);
}

TEST(Materialize, GivesMemoryOfTheAskedTypeAndWeightsFollowTheSeed) {
  const auto filled = [](uint64_t seed) {
    nn::Linear layer = uninitialised_linear(40, 30);
    nn::materialize(*layer, at::kDouble);
    nn::fill_randomly(*layer, seed);
    return layer->parameters();
  };
  const auto first = filled(1);
  EXPECT_EQ(first[0].scalar_type(), at::kDouble);
  EXPECT_TRUE(first[0].is_contiguous());
  EXPECT_NEAR(first[0].std().item<double>(), 1 / std::sqrt(40), 0.01);
  EXPECT_EQ(first[1].abs().max().item<double>(), 0);
  EXPECT_TRUE(torch::equal(first[0], filled(1)[0]));
  EXPECT_FALSE(torch::equal(first[0], filled(2)[0]));
}

// Both begin with the same weights: the same draws in the same order.
template <typename Ours, typename Theirs>
void expect_equal(Ours make_ours, Theirs make_theirs, const at::Tensor& x) {
  torch::manual_seed(3);
  auto ours = make_ours();
  torch::manual_seed(3);
  auto theirs = make_theirs();
  const auto expected = theirs->named_parameters();
  ASSERT_EQ(ours->named_parameters().keys(), expected.keys());
  for (const auto& item : ours->named_parameters()) {
    EXPECT_TRUE(torch::equal(item.value(), expected[item.key()]));
  }
  EXPECT_TRUE(torch::allclose(ours->forward(x), theirs->forward(x)));
}

TEST(Layers, BeginAndComputeAsTorchsDo) {
  const auto tokens = torch::randn({2, 4, 5});
  const auto image = torch::randn({1, 2, 6, 6});
  expect_equal([] { return nn::Linear(5, 3); },
               [] { return torch::nn::Linear(5, 3); }, tokens);
  expect_equal(
      [] { return nn::LayerNorm(5); },
      [] { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({5})); },
      tokens);
  expect_equal([] { return nn::Embedding(7, 3); },
               [] { return torch::nn::Embedding(7, 3); },
               torch::tensor({{0, 6}, {2, 2}}));
  expect_equal(
      [] {
        return nn::Conv2d(nn::ConvConfig{
            .in = 2, .out = 3, .kernel = 3, .stride = 2, .padding = 1});
      },
      [] {
        return torch::nn::Conv2d(
            torch::nn::Conv2dOptions(2, 3, 3).stride(2).padding(1));
      },
      image);
  expect_equal(
      [] {
        return nn::ConvTranspose2d(
            nn::ConvConfig{.in = 2, .out = 3, .kernel = 2, .stride = 2});
      },
      [] {
        return torch::nn::ConvTranspose2d(
            torch::nn::ConvTranspose2dOptions(2, 3, 2).stride(2));
      },
      image);
}

TEST(Linear, WithoutABiasRegistersNone) {
  const nn::Linear layer(2, 2, nn::Bias::kNo);
  EXPECT_EQ(layer->named_parameters().keys(),
            std::vector<std::string>{"weight"});
}

}  // namespace
}  // namespace lockstep

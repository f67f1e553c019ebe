#include "lockstep/nn/bare.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep {
namespace {

TEST(Bare, AModelOfAnySizeIsBuiltWithoutMemory) {
  // 4 TB, were it real.
  BareLinear layer(1'000'000, 1'000'000);
  EXPECT_EQ(layer.parameters()[0].sizes(), at::IntArrayRef({1000000, 1000000}));
  EXPECT_LE(layer.parameters()[0].storage().nbytes(), 4u);
}

TEST(Bare, LayersComputeWhatTorchsDo) {
  torch::manual_seed(3);
  BareLinear ours(5, 3);
  torch::nn::Linear theirs(5, 3);
  ours.parameters()[0].set_data(theirs->weight.data());
  ours.parameters()[1].set_data(theirs->bias.data());
  const auto x = torch::randn({2, 4, 5});
  EXPECT_TRUE(torch::allclose(ours.forward(x), theirs->forward(x)));

  BareConvTranspose2d up({.in = 2, .out = 3, .kernel = 2, .stride = 2});
  torch::nn::ConvTranspose2d other(
      torch::nn::ConvTranspose2dOptions(2, 3, 2).stride(2));
  up.parameters()[0].set_data(other->weight.data());
  up.parameters()[1].set_data(other->bias.data());
  const auto image = torch::randn({1, 2, 4, 4});
  EXPECT_TRUE(torch::allclose(up.forward(image), other->forward(image)));
}

TEST(Bare, MemoryComesInTheAskedTypeAndWeightsFromTheSeed) {
  const auto filled = [](uint64_t seed) {
    auto layer = std::make_shared<BareLinear>(40, 30);
    give_memory(*layer, at::kDouble);
    fill_randomly(*layer, seed);
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

TEST(Bare, WithoutABiasThereIsNoneInTheNames) {
  BareLinear layer(2, 2, Bias::kNo);
  EXPECT_EQ(layer.named_parameters().keys(),
            std::vector<std::string>{"weight"});
}

}  // namespace
}  // namespace lockstep

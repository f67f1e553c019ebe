#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "lockstep/error.h"
#include "lockstep/nn/adaln.h"
#include "lockstep/nn/attention.h"
#include "lockstep/nn/mlp.h"
#include "lockstep/nn/norm.h"
#include "lockstep/nn/patches.h"
#include "lockstep/nn/rope_tables.h"
#include "lockstep/nn/sinusoidal_embedding.h"

namespace lockstep {
namespace {

TEST(RmsNorm, DividesByTheRootOfTheMeanSquareAndWeighsChannels) {
  nn::RmsNorm norm(nn::RmsNormConfig{.size = 8, .eps = 0.5});
  const torch::NoGradGuard no_grad;
  norm->parameters()[0].uniform_(-2, 2);
  const auto x = torch::randn({2, 3, 8}) * 7;
  const auto expected = x / (x.square().mean(-1, true) + 0.5).sqrt() *
                        norm->named_parameters()["weight"];
  EXPECT_TRUE(torch::allclose(norm->forward(x), expected, 1e-6, 1e-6));
}

TEST(RmsNorm, TakesOneWeightForAllChannelsOrNone) {
  const auto x = torch::randn({2, 3, 16}) * 7;
  nn::RmsNorm norm(nn::RmsNormConfig{.size = 16, .has_scalar_weight = true});
  const torch::NoGradGuard no_grad;
  norm->named_parameters()["g"].fill_(0.5);
  EXPECT_TRUE(torch::allclose(norm->forward(x).norm(2, -1),
                              torch::full({2, 3}, 0.5 * 4)));
  EXPECT_TRUE(torch::allclose(kernels::rms_norm(x, {}, 1e-6).norm(2, -1),
                              torch::full({2, 3}, 4.0F)));
}

TEST(RmsNorm, OfZerosIsZeroAndHasAFiniteGradient) {
  const auto x = torch::zeros({1, 1, 4}, torch::requires_grad());
  const auto y = kernels::rms_norm(x, torch::ones({4}), 1e-24 / 4);
  y.sum().backward();
  EXPECT_EQ(y.abs().sum().item<float>(), 0);
  EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
}

TEST(RmsNorm, ComputesInTheWiderType) {
  nn::RmsNorm norm(nn::RmsNormConfig{.size = 16});
  const auto x = torch::randn({4, 16}).to(torch::kBFloat16);
  const auto y = norm->forward(x);
  EXPECT_EQ(y.scalar_type(), torch::kFloat);
  EXPECT_TRUE(torch::equal(y, norm->forward(x.to(torch::kFloat))));
}

TEST(Modulate, ScalesAndShiftsAllTokensOfASample) {
  const auto x = torch::ones({2, 3, 1});
  const auto y =
      kernels::modulate(x, {.shift = torch::tensor({{10.0F}, {20.0F}}),
                            .scale = torch::tensor({{1.0F}, {2.0F}})});
  EXPECT_TRUE(torch::equal(
      y.select(2, 0),
      torch::tensor({{12.0F, 12.0F, 12.0F}, {23.0F, 23.0F, 23.0F}})));
}

TEST(GridPositionEmbedding, HasTheColumnInTheFirstHalfAndTheRowInTheSecond) {
  const auto table = nn::grid_position_embedding(/*side=*/3, /*width=*/8);
  ASSERT_EQ(table.sizes(), (std::vector<int64_t>{9, 8}));
  // Row 1, column 2; frequencies 1 and 1/100.
  const auto position = table[5];
  const std::vector<double> expected = {
      std::sin(2), std::sin(0.02), std::cos(2), std::cos(0.02),
      std::sin(1), std::sin(0.01), std::cos(1), std::cos(0.01)};
  EXPECT_TRUE(
      torch::allclose(position, torch::tensor(expected).to(at::kFloat)));
}

TEST(GridPositionEmbedding, RefusesAWidthThatFourDoesNotDivide) {
  EXPECT_THROW(nn::grid_position_embedding(2, 6), ConfigError);
}

TEST(TimeEmbedding, HasCosinesFirst) {
  const auto t = torch::tensor({0.5});
  const auto y = nn::time_embedding(t, {.width = 4, .max_period = 10});
  const double slow = 0.5 / std::sqrt(10.0);
  EXPECT_TRUE(torch::allclose(
      y, torch::tensor(
             {{std::cos(0.5), std::cos(slow), std::sin(0.5), std::sin(slow)}})
             .to(at::kFloat)));
}

TEST(SwiGlu, GatesTheSecondHalfByTheFirst) {
  nn::Mlp mlp({.width = 4,
               .hidden = 3,
               .activation = nn::Activation::kSwiGlu,
               .names = {.first = "w12", .last = "w3"}});
  const auto x = torch::randn({2, 4});
  const auto all = mlp.named_parameters();
  const auto both = torch::linear(x, all["w12.weight"], all["w12.bias"]);
  const auto a = both.slice(1, 0, 3);
  const auto expected = torch::linear(a * a.sigmoid() * both.slice(1, 3),
                                      all["w3.weight"], all["w3.bias"]);
  EXPECT_TRUE(torch::allclose(mlp.forward(x), expected, 1e-5, 1e-6));
}

TEST(SwiGlu, IsTheSameWithItsHalvesInTwoLayers) {
  nn::Mlp packed(
      {.width = 4, .hidden = 3, .activation = nn::Activation::kSwiGlu});
  nn::Mlp separate({.width = 4,
                    .hidden = 3,
                    .activation = nn::Activation::kSwiGlu,
                    .names = {.first = "gate", .last = "down", .up = "up"}});
  const torch::NoGradGuard no_grad;
  const auto from = packed.named_parameters();
  auto to = separate.named_parameters();
  for (const char* kind : {".weight", ".bias"}) {
    const std::string end = kind;
    to["gate" + end].copy_(from["fc1" + end].slice(0, 0, 3));
    to["up" + end].copy_(from["fc1" + end].slice(0, 3));
    to["down" + end].copy_(from["fc2" + end]);
  }
  const auto x = torch::randn({2, 4});
  EXPECT_TRUE(torch::allclose(packed.forward(x), separate.forward(x)));
}

TEST(Dropout, ActsWhileTrainingOnly) {
  nn::Mlp mlp({.width = 8, .hidden = 6, .dropout = 0.5});
  nn::Attention weights({.width = 8, .num_heads = 2, .attn_dropout = 0.5});
  nn::Attention output({.width = 8, .num_heads = 2, .proj_dropout = 0.5});
  const auto x = torch::randn({2, 5, 8});
  const auto repeats = [&](auto& layer) {
    return torch::equal(layer.forward(x), layer.forward(x));
  };
  EXPECT_FALSE(repeats(mlp) || repeats(weights) || repeats(output));
  for (torch::nn::Module* layer :
       std::initializer_list<torch::nn::Module*>{&mlp, &weights, &output}) {
    layer->eval();
  }
  EXPECT_TRUE(repeats(mlp) && repeats(weights) && repeats(output));
}

TEST(JoinPatches, PutsRowsColumnsAndChannelsOfAPatchInThisOrder) {
  // A number for each position: patch, row, column, channel.
  const auto patches = torch::arange(4 * 4 * 2).view({1, 4, 8});
  const auto image = nn::join_patches(patches, {.patch = 2, .channels = 2})[0];
  ASSERT_EQ(image.sizes(), (std::vector<int64_t>{2, 4, 4}));
  // Patch 2 is the left one of the second row; in it row 1, column 0.
  EXPECT_EQ(image[1][3][0].item<int64_t>(), 2 * 8 + 1 * 4 + 0 * 2 + 1);
  EXPECT_EQ(image[0][0][3].item<int64_t>(), 1 * 8 + 0 * 4 + 1 * 2 + 0);
}

TEST(Attention, IsTheWeightedMeanOfTheValuesOfEachHead) {
  nn::Attention attention({.width = 8, .num_heads = 2});
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

TEST(Attention, NormsAndRotatesQueriesAndKeysOfEachHead) {
  nn::Attention attention(
      {.width = 16, .num_heads = 2, .qk_norm = nn::QkNorm::kRms});
  const torch::NoGradGuard no_grad;
  for (auto& parameter : attention.parameters()) parameter.normal_(0, 0.5);
  const kernels::RopeTable rope = nn::grid_rope_table(
      {.rows = 2, .columns = 2, .head_size = 8, .num_context = 1});
  const auto x = torch::randn({2, 5, 16});
  const auto all = attention.named_parameters();
  const auto qkv = torch::linear(x, all["qkv.weight"], all["qkv.bias"])
                       .view({2, 5, 3, 2, 8})
                       .to(torch::kDouble);
  const auto ready = [&](int64_t which, const std::string& norm, int64_t head) {
    const auto part = qkv.select(2, which).select(2, head);
    const auto normed = part / (part.square().mean(-1, true) + 1e-6).sqrt() *
                        all[norm + ".weight"];
    return kernels::apply_rope(normed.unsqueeze(2), rope).squeeze(2);
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
  const kernels::RopeTable float_rope = kernels::moved_to(rope, torch::kFloat);
  EXPECT_TRUE(torch::allclose(attention.forward(x, {.rope = &float_rope}),
                              expected, 1e-4, 1e-5));
}

void copy_parameters(const torch::nn::Module& from, torch::nn::Module& to) {
  const torch::NoGradGuard no_grad;
  const auto sources = from.parameters();
  const auto targets = to.parameters();
  ASSERT_EQ(sources.size(), targets.size());
  for (size_t i = 0; i < sources.size(); ++i) targets[i].copy_(sources[i]);
}

TEST(Attention, IsTorchsWithTorchsNames) {
  torch::nn::MultiheadAttention theirs(
      torch::nn::MultiheadAttentionOptions(8, 2));
  nn::Attention ours(
      {.width = 8, .num_heads = 2, .names = nn::AttentionNames::kTorch});
  ASSERT_EQ(ours.named_parameters().keys(), theirs->named_parameters().keys());
  copy_parameters(*theirs, ours);
  const auto x = torch::randn({2, 5, 8});
  const auto context = torch::randn({2, 3, 8});
  const auto expected = [&](const at::Tensor& keys) {
    const auto k = keys.transpose(0, 1);
    return std::get<0>(theirs->forward(x.transpose(0, 1), k, k))
        .transpose(0, 1);
  };
  EXPECT_TRUE(torch::allclose(ours.forward(x), expected(x), 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(ours.cross_attend(x, context, {}),
                              expected(context), 1e-5, 1e-6));
}

TEST(Attention, HeadsMayShareKeysAndValues) {
  const nn::AttentionConfig config{.width = 8,
                                   .num_heads = 4,
                                   .num_kv_heads = 2,
                                   .names = nn::AttentionNames::kLlama};
  nn::Attention grouped(config);
  nn::AttentionConfig full = config;
  full.num_kv_heads = {};
  nn::Attention all(full);
  const torch::NoGradGuard no_grad;
  const auto from = grouped.named_parameters();
  for (auto& item : all.named_parameters()) {
    const at::Tensor& source = from[item.key()];
    if (source.size(0) == item.value().size(0)) {
      item.value().copy_(source);
    } else {
      item.value().copy_(
          source.unflatten(0, {2, 2}).repeat_interleave(2, 0).flatten(0, 1));
    }
  }
  const auto x = torch::randn({2, 5, 8});
  EXPECT_TRUE(torch::allclose(grouped.forward(x, {.is_causal = true}),
                              all.forward(x, {.is_causal = true}), 1e-5, 1e-6));
}

TEST(Attention, MaskedKeysAreNotSeen) {
  nn::Attention attention({.width = 8, .num_heads = 2});
  const auto x = torch::randn({1, 5, 8});
  const auto mask = torch::tensor({true, true, true, false, false});
  EXPECT_TRUE(torch::allclose(
      attention.forward(x, {.mask = mask.view({1, 1, 1, 5})}).slice(1, 0, 3),
      attention.forward(x.slice(1, 0, 3)), 1e-5, 1e-6));
}

}  // namespace
}  // namespace lockstep

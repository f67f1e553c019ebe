#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "lockstep/models/jit/text_model.h"
#include "support/weights.h"

namespace lockstep {
namespace {

using testing::set_all_random;
using Shape = std::vector<int64_t>;

const jit::JitTextConfig kSmallJitText = {
    .image_size = 16, .patch = 4, .width = 32, .depth = 2, .num_heads = 2};

// bool [1, S, S] of the first pixels.
at::Tensor first_pixels(int64_t count, int64_t side = 16) {
  return (torch::arange(side * side) < count).view({1, side, side});
}

TEST(JitTextModel, HasTheParametersOfTheGuideInTheirOrder) {
  const jit::JitText model({});
  std::vector<std::pair<std::string, Shape>> expected = {
      {"pos_embed_h", {1, 16, 768}},
      {"pos_embed_w", {1, 16, 768}},
      {"cond_pos_embed_h", {1, 16, 768}},
      {"cond_pos_embed_w", {1, 16, 768}},
      {"patch_embed.weight", {768, 48}},
      {"condition_embed.weight", {768, 48}}};
  for (int i = 0; i < 12; ++i) {
    const std::string block = "blocks." + std::to_string(i) + ".";
    expected.insert(expected.end(),
                    {{block + "attn.qkv.weight", {2304, 768}},
                     {block + "attn.proj.weight", {768, 768}},
                     {block + "attn.proj.bias", {768}},
                     {block + "mlp.0.weight", {6144, 768}},
                     {block + "mlp.0.bias", {6144}},
                     {block + "mlp.3.weight", {768, 3072}},
                     {block + "mlp.3.bias", {768}},
                     {block + "adaLN.norm.weight", {768}},
                     {block + "adaLN.scale_mlp.1.weight", {768, 768}},
                     {block + "adaLN.scale_mlp.1.bias", {768}},
                     {block + "adaLN.shift_mlp.1.weight", {768, 768}},
                     {block + "adaLN.shift_mlp.1.bias", {768}}});
  }
  expected.insert(expected.end(), {{"output_proj.weight", {48, 768}},
                                   {"output_proj.bias", {48}}});
  std::vector<std::pair<std::string, Shape>> found;
  int64_t count = 0;
  for (const auto& item : model.named_parameters()) {
    found.emplace_back(item.key(), item.value().sizes().vec());
    count += item.value().numel();
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(count, 127'681'584);
  ASSERT_EQ(model.named_buffers().size(), 1U);
  EXPECT_EQ(model.named_buffers()["time_embed.emb"].sizes(), (Shape{384}));
}

TEST(JitTextModel, CountsItsWork) {
  EXPECT_NEAR(
      jit::jit_text_forward_flops({}, jit::TextCondition::kPrompt) / 2e9, 62.9,
      0.1);
  EXPECT_NEAR(jit::jit_text_forward_flops({}, jit::TextCondition::kNone) / 2e9,
              30.2, 0.1);
}

TEST(JitTextModel, GivesAGradientToWhatTakesPart) {
  for (const bool has_condition : {false, true}) {
    jit::JitText model(kSmallJitText);
    set_all_random(model, 0.2);
    jit::JitTextInput input{.images = torch::randn({2, 3, 16, 16}),
                            .times = torch::tensor({3, 999})};
    if (has_condition) input.condition = torch::rand({2, 3, 16, 16});
    model.forward(input).square().sum().backward();
    for (const auto& item : model.named_parameters()) {
      const bool takes_part = has_condition || !item.key().starts_with("cond");
      const at::Tensor& gradient = item.value().grad();
      ASSERT_EQ(gradient.defined(), takes_part) << item.key();
      if (!takes_part) continue;
      EXPECT_GT(gradient.abs().max().item<float>(), 0) << item.key();
    }
  }
}

TEST(JitTextModel, FrozenConditionsRequireNoGradient) {
  jit::JitText model(kSmallJitText);
  model.freeze_conditions();
  for (const auto& item : model.named_parameters()) {
    EXPECT_EQ(item.value().requires_grad(), !item.key().starts_with("cond"))
        << item.key();
  }
}

TEST(JitTextModel, APatchCountsWhenAnyOfItsPixelsDoes) {
  jit::JitText model(kSmallJitText);
  set_all_random(model, 0.2);
  const torch::NoGradGuard no_grad;
  jit::JitTextInput input{.images = torch::randn({1, 3, 16, 16}),
                          .times = torch::tensor({500}),
                          .mask = first_pixels(5)};
  const auto first = model.forward(input);
  // Two patches of the first row; nothing else is predicted.
  EXPECT_GT(first.slice(2, 0, 4).slice(3, 0, 8).abs().min().item<float>(), 0);
  EXPECT_EQ(first.slice(2, 4).abs().max().item<float>(), 0);
  EXPECT_EQ(first.slice(3, 8).abs().max().item<float>(), 0);
  // What does not count is not seen.
  input.images = input.images.clone();
  input.images.slice(2, 4).normal_();
  EXPECT_TRUE(torch::equal(model.forward(input), first));
  // A mask of all is as none.
  input.mask = first_pixels(256);
  const auto whole = model.forward(input);
  input.mask = at::Tensor();
  EXPECT_TRUE(torch::allclose(model.forward(input), whole, 1e-5, 1e-5));
}

TEST(JitTextModel, IsNumbersWhereNothingCounts) {
  jit::JitText model(kSmallJitText);
  set_all_random(model, 0.2);
  const auto made = model.forward({.images = torch::randn({1, 3, 16, 16}),
                                   .times = torch::tensor({500}),
                                   .mask = first_pixels(0)});
  EXPECT_EQ(made.abs().max().item<float>(), 0);
  made.sum().backward();
  for (const auto& item : model.named_parameters()) {
    if (item.key().starts_with("cond")) continue;
    EXPECT_FALSE(item.value().grad().isnan().any().item<bool>()) << item.key();
  }
}

TEST(JitTextModel, SeesTheCondition) {
  jit::JitText model(kSmallJitText);
  set_all_random(model, 0.2);
  const torch::NoGradGuard no_grad;
  jit::JitTextInput input{.images = torch::randn({1, 3, 16, 16}),
                          .times = torch::tensor({500}),
                          .condition = torch::rand({1, 3, 16, 16}),
                          .mask = first_pixels(20)};
  const auto before = model.forward(input);
  input.condition = torch::rand({1, 3, 16, 16});
  EXPECT_FALSE(torch::allclose(model.forward(input), before));
}

TEST(JitTextModel, RefusesSizesThatDoNotFit) {
  EXPECT_THROW(jit::check_jit_text_config({.image_size = 18, .patch = 4}),
               ConfigError);
  EXPECT_THROW(jit::check_jit_text_config({.width = 16, .num_heads = 3}),
               ConfigError);
  EXPECT_THROW(jit::check_jit_text_config({.width = 15, .num_heads = 3}),
               ConfigError);
}

}  // namespace
}  // namespace lockstep

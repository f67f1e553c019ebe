#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "lockstep/models/dit/model.h"
#include "support/weights.h"

namespace lockstep {
namespace {

using testing::num_trainable;
using testing::set_all_random;

const dit::DitConfig kSmallDit = {.image_size = 8,
                                  .patch = 2,
                                  .width = 16,
                                  .depth = 2,
                                  .num_heads = 2,
                                  .num_classes = 3,
                                  .num_registers = 2};

TEST(DitModel, HasTheParametersOfTheGuide) {
  const auto count = [](int64_t registers) {
    return num_trainable(dit::Dit({.num_registers = registers}));
  };
  EXPECT_EQ(count(0), 32'475'685);
  EXPECT_EQ(count(4), 32'477'221);
  EXPECT_EQ(count(8), 32'478'757);
  EXPECT_EQ(count(16), 32'481'829);
}

TEST(DitModel, HasTheNamesAndShapesOfTheOriginal) {
  const dit::Dit model({.num_registers = 4});
  const auto all = model.named_parameters();
  EXPECT_EQ(all.size(), 158U);
  const auto shape = [&](const std::string& name) {
    return all[name].sizes().vec();
  };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(shape("register_tokens"), (Shape{4, 384}));
  EXPECT_EQ(shape("pos_embed"), (Shape{1, 256, 384}));
  EXPECT_FALSE(all["pos_embed"].requires_grad());
  EXPECT_EQ(shape("x_embedder.proj.weight"), (Shape{384, 3, 2, 2}));
  EXPECT_EQ(shape("t_embedder.mlp.0.weight"), (Shape{384, 256}));
  EXPECT_EQ(shape("t_embedder.mlp.2.bias"), (Shape{384}));
  EXPECT_EQ(shape("y_embedder.embedding.weight"), (Shape{11, 384}));
  EXPECT_EQ(shape("blocks.11.norm2.g"), (Shape{1}));
  EXPECT_EQ(shape("blocks.0.attn.qkv.weight"), (Shape{1152, 384}));
  EXPECT_EQ(shape("blocks.0.mlp.fc2.weight"), (Shape{384, 1536}));
  EXPECT_EQ(shape("blocks.0.adaLN_modulation.1.bias"), (Shape{2304}));
  EXPECT_EQ(shape("final_layer.norm_final.g"), (Shape{1}));
  EXPECT_EQ(shape("final_layer.adaLN_modulation.1.weight"), (Shape{768, 384}));
  EXPECT_EQ(shape("final_layer.linear.weight"), (Shape{12, 384}));
}

TEST(DitModel, BeginsAsZeroAndGivesEveryParameterAGradient) {
  for (const int64_t registers : {0, 2}) {
    dit::DitConfig config = kSmallDit;
    config.num_registers = registers;
    dit::Dit model(config);
    const auto forward = [&] {
      return model.forward(torch::randn({2, 3, 8, 8}), torch::rand({2}),
                           torch::tensor({0, 3}));
    };
    EXPECT_EQ(forward().abs().max().item<float>(), 0);
    set_all_random(model, 0.3);
    forward().square().sum().backward();
    for (const auto& item : model.named_parameters()) {
      if (!item.value().requires_grad()) continue;
      EXPECT_TRUE(item.value().grad().defined()) << item.key();
    }
  }
}

TEST(DitModel, CountsItsWork) {
  // 6.06 G multiplications and as many additions.
  EXPECT_NEAR(dit::dit_forward_flops({}) / 2e9, 6.06, 0.01);
}

TEST(DitModel, RefusesSizesThatDoNotFit) {
  EXPECT_THROW(dit::check_dit_config({.image_size = 9, .patch = 2}),
               ConfigError);
  EXPECT_THROW(dit::check_dit_config({.width = 16, .num_heads = 3}),
               ConfigError);
  EXPECT_THROW(dit::check_dit_config({.width = 18, .num_heads = 3}),
               ConfigError);
}

}  // namespace
}  // namespace lockstep

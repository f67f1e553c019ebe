#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "lockstep/models/atlas/model.h"

namespace lockstep {
namespace {

using torch::Tensor;

int64_t count(const torch::nn::Module& module, const std::string& prefix) {
  int64_t number = 0;
  for (const auto& item : module.named_parameters()) {
    if (item.key().starts_with(prefix)) number += item.value().numel();
  }
  return number;
}

TEST(AtlasModel, HasTheParametersOfTheOriginal) {
  const atlas::AtlasModel model{atlas::AtlasModelConfig{}};
  EXPECT_EQ(count(model, "geom_encoder."), 899'328);
  EXPECT_EQ(count(model, "fusion."), 72'963'072);
  EXPECT_EQ(count(model, "action_head."), 791'047);
  EXPECT_EQ(count(model, ""), 74'653'447);
  const auto parameters = model.named_parameters();
  const auto shape = [&](const char* name) {
    return parameters[name].sizes().vec();
  };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(shape("geom_encoder.token_query"), (Shape{1, 1, 2048}));
  EXPECT_EQ(shape("geom_encoder.token_pooler.1.weight"), (Shape{256}));
  EXPECT_EQ(shape("geom_encoder.pointnet.conv3.weight"), (Shape{256, 128, 1}));
  EXPECT_EQ(shape("geom_encoder.pose_encoder.0.weight"), (Shape{128, 9}));
  EXPECT_EQ(shape("geom_encoder.final_proj.weight"), (Shape{512, 640}));
  EXPECT_EQ(shape("fusion.lang_proj.0.weight"), (Shape{1024, 4096}));
  EXPECT_EQ(shape("fusion.cross_attn_layers.3.multihead_attn.in_proj_weight"),
            (Shape{3072, 1024}));
  EXPECT_EQ(shape("fusion.cross_attn_layers.0.linear1.weight"),
            (Shape{4096, 1024}));
  EXPECT_EQ(shape("fusion.output_proj.bias"), (Shape{1024}));
  EXPECT_EQ(shape("action_head.shared_layers.4.weight"), (Shape{256, 512}));
  EXPECT_EQ(shape("action_head.gripper_head.2.weight"), (Shape{1, 256}));
  // Parameters and the buffers of three norms.
  EXPECT_EQ(parameters.size() + model.named_buffers().size(), 132U);
}

// Counted in the original at these sizes.
TEST(AtlasModel, TheGeometryEncoderFollowsItsOutputsAsTheOriginal) {
  const atlas::AtlasModel model{
      atlas::AtlasModelConfig{.geometry = {.token_size = 128, .outputs = 64},
                              .fusion = {.language_size = 64,
                                         .geometry_size = 64,
                                         .width = 64,
                                         .num_heads = 4}}};
  EXPECT_EQ(count(model, ""), 602'247);
  EXPECT_EQ(count(model, "geom_encoder."), 22'848);
  const auto parameters = model.named_parameters();
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(parameters["geom_encoder.token_pooler.0.weight"].sizes(),
            (Shape{32, 128}));
  EXPECT_EQ(parameters["geom_encoder.pointnet.conv3.weight"].sizes(),
            (Shape{32, 128, 1}));
  EXPECT_EQ(parameters["geom_encoder.pose_encoder.0.weight"].sizes(),
            (Shape{16, 9}));
  EXPECT_EQ(parameters["geom_encoder.final_proj.weight"].sizes(),
            (Shape{64, 80}));
}

TEST(AtlasModel, WithoutThePoseNothingProjectsTheGeometry) {
  const auto has_projection = [](const atlas::GeometryConfig& config) {
    return atlas::GeometryEncoder(config).named_parameters().contains(
        "final_proj.weight");
  };
  EXPECT_TRUE(has_projection({}));
  EXPECT_FALSE(has_projection({.use_pose = false}));
  EXPECT_TRUE(has_projection({.use_pointnet = false}));
  EXPECT_TRUE(has_projection({.use_pointnet = false, .use_pose = false}));
  // Two halves of 510 / 2 are less than an odd width.
  EXPECT_TRUE(has_projection({.outputs = 511, .use_pose = false}));
  atlas::GeometryEncoder encoder(
      {.token_size = 8, .outputs = 12, .use_pose = false});
  const Tensor geometry =
      encoder.forward({.tokens = torch::randn({2, 3, 8}),
                       .points = torch::randn({2, 3, 20, 3})});
  EXPECT_EQ(geometry.sizes(), (std::vector<int64_t>{2, 3, 12}));
}

atlas::AtlasModelConfig small() {
  return {.geometry = {.token_size = 8, .outputs = 12},
          .fusion = {.language_size = 10,
                     .geometry_size = 12,
                     .width = 16,
                     .num_heads = 2,
                     .num_layers = 2}};
}

atlas::AtlasInput some_input(int64_t batch, int64_t tokens) {
  return {.views = {.tokens = torch::randn({batch, 2, 8}),
                    .pose = torch::randn({batch, 2, 9}),
                    .points = torch::randn({batch, 2, 20, 3})},
          .language = torch::randn({batch, tokens, 10}),
          .mask = torch::ones({batch, tokens}, torch::kBool)};
}

TEST(AtlasModel, PaddingOfASentenceChangesNothing) {
  atlas::AtlasModel model(small());
  model.eval();
  const atlas::AtlasInput input = some_input(2, 4);
  atlas::AtlasInput padded = input;
  padded.language = torch::cat({input.language, torch::randn({2, 3, 10})}, 1);
  padded.mask = torch::cat({input.mask, torch::zeros({2, 3}, torch::kBool)}, 1);
  EXPECT_LT((model.forward(input).pose - model.forward(padded).pose)
                .abs()
                .max()
                .item<double>(),
            1e-5);
}

TEST(AtlasModel, TheGripperCoversTheRangeOfTheData) {
  for (const auto range :
       {atlas::GripperRange::kZeroOne, atlas::GripperRange::kMinusOneOne}) {
    atlas::ActionHead head(16, 0, range);
    head.eval();
    {
      const torch::NoGradGuard no_grad;
      // Weights of both signs: some outputs are far below 0, some far above.
      Tensor weight = head.named_parameters()["gripper_head.2.weight"];
      weight.copy_(torch::linspace(-1e4, 1e4, weight.numel()).view_as(weight));
    }
    const Tensor gripper = head.forward(torch::randn({200, 16})).gripper;
    EXPECT_NEAR(gripper.max().item<double>(), 1, 1e-3);
    EXPECT_NEAR(gripper.min().item<double>(),
                range == atlas::GripperRange::kZeroOne ? 0 : -1, 1e-3);
  }
}

TEST(AtlasModel, HeadsMustDivideTheWidth) {
  atlas::AtlasModelConfig config = small();
  config.fusion.num_heads = 3;
  EXPECT_THROW(atlas::AtlasModel{config}, ConfigError);
}

}  // namespace
}  // namespace lockstep

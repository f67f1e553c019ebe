// The part of atlas that learns, its losses, errors and gradients are those of
// an independent implementation; the other side is python/atlas_reference.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "interop/parity.h"
#include "lockstep/checkpoint.h"
#include "lockstep/models/atlas/losses.h"
#include "lockstep/models/atlas/model.h"

namespace lockstep::testing {
namespace {

using torch::Tensor;

struct CaseConfig {
  std::string name = {};
  atlas::AtlasModelConfig model = {};
  atlas::AtlasLossConfig loss = {};
  at::ScalarType type = at::kFloat;
  double tolerance = 1e-4;
};

atlas::AtlasModelConfig small_model(atlas::GripperRange range) {
  return {.geometry = {.token_size = 24, .outputs = 20},
          .fusion = {.language_size = 28,
                     .geometry_size = 20,
                     .width = 32,
                     .num_heads = 4,
                     .num_layers = 2,
                     .dropout = 0},
          .head_dropout = 0,
          .gripper = range};
}

std::vector<CaseConfig> cases() {
  atlas::AtlasModelConfig plain = small_model(atlas::GripperRange::kZeroOne);
  plain.geometry.use_pointnet = false;
  plain.geometry.use_pose = false;
  atlas::AtlasModelConfig without_pose =
      small_model(atlas::GripperRange::kZeroOne);
  without_pose.geometry.use_pose = false;
  atlas::AtlasModelConfig without_points =
      small_model(atlas::GripperRange::kZeroOne);
  without_points.geometry.use_pointnet = false;
  atlas::AtlasModelConfig odd = small_model(atlas::GripperRange::kZeroOne);
  odd.geometry = {.token_size = 24, .outputs = 21, .use_pose = false};
  odd.fusion.geometry_size = 21;
  return {
      {.name = "guide", .model = small_model(atlas::GripperRange::kZeroOne)},
      {.name = "without_pose", .model = without_pose},
      {.name = "without_points", .model = without_points},
      {.name = "odd", .model = odd},
      {.name = "signed",
       .model = small_model(atlas::GripperRange::kMinusOneOne),
       .loss = {.pose_weight = 0.7,
                .gripper_weight = 2,
                .pose_loss_type = "l1",
                .gripper_loss_type = "bce"}},
      {.name = "plain", .model = plain, .loss = {.pose_loss_type = "l2"}},
      {.name = "double",
       .model = small_model(atlas::GripperRange::kMinusOneOne),
       .type = at::kDouble,
       .tolerance = 1e-9}};
}

struct Case {
  CaseConfig config = {};
  std::shared_ptr<atlas::AtlasModel> model = {};
  atlas::AtlasInput input = {};
  Tensor actions = {};
};

Case make_case(const CaseConfig& config) {
  constexpr int64_t kBatch = 3;
  constexpr int64_t kViews = 2;
  Case made{.config = config,
            .model = std::make_shared<atlas::AtlasModel>(config.model)};
  shake(*made.model, 0.1);
  const auto& geometry = config.model.geometry;
  made.input.views = {
      .tokens = torch::randn({kBatch, kViews, geometry.token_size}),
      .pose = torch::randn({kBatch, kViews, 9}),
      .points = torch::randn({kBatch, kViews, 30, 3})};
  made.input.language =
      torch::randn({kBatch, 5, config.model.fusion.language_size});
  made.input.mask = torch::arange(5) < torch::tensor({5, 2, 1}).unsqueeze(1);
  made.actions = torch::randn({kBatch, 7}) * 1.5;
  const bool is_signed =
      config.model.gripper == atlas::GripperRange::kMinusOneOne;
  made.actions.select(1, 6).copy_(
      torch::tensor({is_signed ? -1. : 0., 1., is_signed ? -1. : 0.}));
  return made;
}

Tree tree_of(const Case& made) {
  Tree tree = Tree::dict();
  const atlas::AtlasModelConfig& model = made.config.model;
  Tree sizes = Tree::dict();
  sizes["token_size"] = model.geometry.token_size;
  sizes["language_size"] = model.fusion.language_size;
  sizes["geometry"] = model.geometry.outputs;
  sizes["fusion"] = model.fusion.width;
  sizes["fusion_heads"] = model.fusion.num_heads;
  sizes["fusion_layers"] = model.fusion.num_layers;
  sizes["has_pointnet"] = model.geometry.use_pointnet ? 1 : 0;
  sizes["has_pose"] = model.geometry.use_pose ? 1 : 0;
  sizes["gripper_range"] = model.gripper == atlas::GripperRange::kZeroOne
                               ? "zero_one"
                               : "minus_one_one";
  tree["sizes"] = std::move(sizes);
  Tree settings = Tree::dict();
  settings["pose_loss_type"] = made.config.loss.pose_loss_type;
  settings["gripper_loss_type"] = made.config.loss.gripper_loss_type;
  settings["pose_weight"] = made.config.loss.pose_weight;
  settings["gripper_weight"] = made.config.loss.gripper_weight;
  tree["settings"] = std::move(settings);
  Tree weights = Tree::dict();
  const Tree state = module_state(*made.model);
  for (const auto& entry : *state.get_if<Tree::Dict>()) {
    weights[*entry.key.get_if<std::string>()] =
        entry.value.get_if<Tensor>()->detach().clone();
  }
  tree["weights"] = std::move(weights);
  tree["tokens"] = made.input.views.tokens;
  tree["pose"] = made.input.views.pose;
  tree["points"] = made.input.views.points;
  tree["language"] = made.input.language;
  tree["mask"] = made.input.mask;
  tree["actions"] = made.actions;
  tree["is_double"] = made.config.type == at::kDouble ? 1 : 0;
  return tree;
}

void convert(Case& made) {
  made.model->to(made.config.type);
  for (Tensor* tensor :
       {&made.input.views.tokens, &made.input.views.pose,
        &made.input.views.points, &made.input.language, &made.actions}) {
    *tensor = tensor->to(made.config.type);
  }
}

int64_t num_trainable(const atlas::AtlasModel& model) {
  int64_t count = 0;
  for (const Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

void compare_errors(const atlas::AtlasErrors& errors, const TreeView& theirs,
                    double tolerance) {
  const auto near = [&](const Tensor& values, const char* name) {
    EXPECT_NEAR(values.to(at::kDouble).mean().item<double>(),
                theirs.at(name).as_tensor().item<double>(), tolerance)
        << name;
  };
  near(errors.pose_l2, "pose_l2_error");
  near(errors.pose_l1, "pose_l1_error");
  near(errors.gripper, "gripper_error");
  near(errors.gripper_is_right, "gripper_accuracy");
}

void compare(Case made, const TreeView& theirs) {
  convert(made);
  const double tolerance = made.config.tolerance;
  const atlas::AtlasLossConfig& loss = made.config.loss;
  const atlas::GripperRange range = made.config.model.gripper;
  made.model->train();
  const atlas::AtlasOutput output = made.model->forward(made.input);
  expect_close(output.pose, theirs.at("pose").as_tensor(), {"pose", tolerance});
  expect_close(output.gripper, theirs.at("gripper").as_tensor(),
               {"gripper", tolerance});
  EXPECT_EQ(num_trainable(*made.model), theirs.at("num_trainable").as_int());
  const atlas::AtlasLosses losses =
      atlas::atlas_losses(output, made.actions, loss, range);
  const Tensor total = loss.pose_weight * losses.pose.mean() +
                       loss.gripper_weight * losses.gripper.mean();
  expect_close(total, theirs.at("total").as_tensor(), {"total", tolerance});
  compare_errors(atlas::atlas_errors(output, made.actions, range),
                 theirs.at("metrics"), tolerance);
  total.backward();
  for (const auto& item : made.model->named_parameters()) {
    const auto expected = theirs.at("gradients").find(item.key());
    ASSERT_EQ(item.value().grad().defined(), expected.has_value())
        << item.key();
    // A bias before a BatchNorm has a gradient of rounding alone.
    const bool is_noise =
        item.key().find("pointnet.conv") != std::string::npos &&
        item.key().ends_with("bias");
    if (!expected || is_noise) continue;
    expect_close(item.value().grad(), expected->as_tensor(),
                 {item.key(), tolerance});
  }
  made.model->eval();
  const atlas::AtlasOutput again = made.model->forward(made.input);
  expect_close(again.pose.detach(), theirs.at("eval_pose").as_tensor(),
               {"pose of running statistics", tolerance});
  expect_close(again.gripper.detach(), theirs.at("eval_gripper").as_tensor(),
               {"gripper of running statistics", tolerance});
}

TEST(AtlasParity, ModelLossesErrorsAndGradients) {
  at::set_num_threads(1);
  torch::manual_seed(5);
  std::vector<Case> made;
  Tree tree = Tree::dict();
  for (const CaseConfig& config : cases()) {
    made.push_back(make_case(config));
    tree[config.name] = tree_of(made.back());
  }
  const Tree theirs = run_reference("atlas_reference.py", tree);
  for (const Case& one : made) {
    SCOPED_TRACE(one.config.name);
    compare(one, TreeView(theirs).at(one.config.name));
  }
}

}  // namespace
}  // namespace lockstep::testing

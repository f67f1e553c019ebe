#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include "lockstep/engine/precision.h"
#include "lockstep/error.h"
#include "lockstep/models/vggt/frozen.h"
#include "lockstep/tensor/autocast.h"
#include "lockstep/tensor/device.h"
#include "support/messages.h"
#include "support/random_vggt.h"
#include "support/seen_operations.h"
#include "support/weights.h"

namespace lockstep {
namespace {

using testing::contains;
using testing::refusal;
using testing::Shapes;
using testing::shapes_of;
using torch::Tensor;

// Names and shapes of the published model, by rule.
class Published {
 public:
  Shapes shapes() {
    add_vit("aggregator.patch_embed.");
    shapes_["aggregator.camera_token"] = {1, 2, 1, 1024};
    shapes_["aggregator.register_token"] = {1, 2, 4, 1024};
    for (int i = 0; i < 24; ++i) {
      for (const char* list : {"frame_blocks.", "global_blocks."}) {
        const std::string block = "aggregator." + (list + std::to_string(i));
        add_block(block + ".", 1024);
        add_pair(block + ".attn.q_norm", {64});
        add_pair(block + ".attn.k_norm", {64});
      }
    }
    add_camera_head("camera_head.");
    add_map_head("point_head.", 4);
    add_map_head("depth_head.", 2);
    return shapes_;
  }

 private:
  void add_pair(const std::string& layer, const std::vector<int64_t>& weight) {
    add_pair(layer, weight, weight[0]);
  }
  void add_pair(const std::string& layer, const std::vector<int64_t>& weight,
                int64_t bias) {
    shapes_[layer + ".weight"] = weight;
    shapes_[layer + ".bias"] = {bias};
  }

  void add_block(const std::string& name, int64_t width) {
    add_pair(name + "norm1", {width});
    add_pair(name + "norm2", {width});
    add_pair(name + "attn.qkv", {3 * width, width});
    add_pair(name + "attn.proj", {width, width});
    add_pair(name + "mlp.fc1", {4 * width, width});
    add_pair(name + "mlp.fc2", {width, 4 * width});
    shapes_[name + "ls1.gamma"] = {width};
    shapes_[name + "ls2.gamma"] = {width};
  }

  void add_vit(const std::string& name) {
    shapes_[name + "cls_token"] = {1, 1, 1024};
    shapes_[name + "mask_token"] = {1, 1024};
    shapes_[name + "pos_embed"] = {1, 1 + 37 * 37, 1024};
    shapes_[name + "register_tokens"] = {1, 4, 1024};
    add_pair(name + "patch_embed.proj", {1024, 3, 14, 14});
    add_pair(name + "norm", {1024});
    for (int i = 0; i < 24; ++i) {
      add_block(name + "blocks." + std::to_string(i) + ".", 1024);
    }
  }

  void add_camera_head(const std::string& name) {
    shapes_[name + "empty_pose_tokens"] = {1, 1, 9};
    add_pair(name + "embed_pose", {2048, 9});
    add_pair(name + "poseLN_modulation.1", {6144, 2048});
    add_pair(name + "pose_branch.fc1", {1024, 2048});
    add_pair(name + "pose_branch.fc2", {9, 1024});
    add_pair(name + "token_norm", {2048});
    add_pair(name + "trunk_norm", {2048});
    for (int i = 0; i < 4; ++i) {
      add_block(name + "trunk." + std::to_string(i) + ".", 2048);
    }
  }

  void add_map_head(const std::string& name, int64_t outputs) {
    add_pair(name + "norm", {2048});
    const std::array<int64_t, 4> outs = {256, 512, 1024, 1024};
    const std::string scratch = name + "scratch.";
    for (size_t i = 0; i < outs.size(); ++i) {
      add_pair(name + "projects." + std::to_string(i), {outs[i], 2048, 1, 1});
      const std::string number = std::to_string(i + 1);
      shapes_[scratch + "layer" + number + "_rn.weight"] = {256, outs[i], 3, 3};
      const std::string fusion = scratch + "refinenet" + number + ".";
      add_pair(fusion + "out_conv", {256, 256, 1, 1});
      for (const char* unit : {"resConfUnit1", "resConfUnit2"}) {
        if (i == 3 && std::string(unit) == "resConfUnit1") continue;
        add_pair(fusion + unit + ".conv1", {256, 256, 3, 3});
        add_pair(fusion + unit + ".conv2", {256, 256, 3, 3});
      }
    }
    add_pair(name + "resize_layers.0", {256, 256, 4, 4});
    add_pair(name + "resize_layers.1", {512, 512, 2, 2});
    add_pair(name + "resize_layers.3", {1024, 1024, 3, 3});
    add_pair(scratch + "output_conv1", {128, 256, 3, 3});
    add_pair(scratch + "output_conv2.0", {32, 128, 3, 3});
    add_pair(scratch + "output_conv2.2", {outputs, 32, 1, 1});
  }

  Shapes shapes_;
};

std::shared_ptr<vggt::Vggt> make_tiny() {
  return testing::random_vggt(vggt::vggt_preset("vggt_tiny"));
}

class VggtTest : public ::testing::Test {
 protected:
  VggtTest() {
    at::set_num_threads(1);
    torch::manual_seed(3);
  }
};

TEST_F(VggtTest, HasNamesAndShapesOfThePublishedModel) {
  const vggt::Vggt net(vggt::vggt_preset("vggt_1b"));
  const Shapes expected = Published().shapes();
  const Shapes ours = shapes_of(net);
  for (const auto& [name, shape] : expected) {
    ASSERT_TRUE(ours.contains(name)) << name;
    EXPECT_EQ(ours.at(name), shape) << name;
  }
  EXPECT_EQ(ours.size(), expected.size());
  EXPECT_TRUE(net.buffers().empty());
  std::map<std::string, int64_t> counts;
  for (const auto& item : net.named_parameters()) {
    counts[item.key().substr(0, item.key().find('.'))] += item.value().numel();
  }
  EXPECT_EQ(counts,
            (std::map<std::string, int64_t>{{"aggregator", 909'112'320},
                                            {"camera_head", 216'174'610},
                                            {"point_head", 32'654'628},
                                            {"depth_head", 32'654'562}}));
}

TEST_F(VggtTest, TakesNoMemoryBeforeItsWeightsAreThere) {
  const vggt::Vggt first(vggt::vggt_preset("vggt_tiny"));
  const int64_t before = tensor::host_memory_in_use();
  const vggt::Vggt net(vggt::vggt_preset("vggt_1b"));
  EXPECT_LT(tensor::host_memory_in_use() - before, 64 << 20);
}

TEST_F(VggtTest, GivesWhatIsWantedAlone) {
  const torch::NoGradGuard no_grad;
  const auto net = make_tiny();
  const Tensor images = torch::rand({2, 3, 3, 28, 42});
  using Shape = std::vector<int64_t>;
  const vggt::VggtGeometry all =
      net->forward(images, {.points = true, .pose = true, .depth = true});
  EXPECT_EQ(all.tokens.sizes(), (Shape{2, 3, 32}));
  EXPECT_EQ(all.pose.sizes(), (Shape{2, 3, 9}));
  EXPECT_EQ(all.points.sizes(), (Shape{2, 3, 28, 42, 3}));
  EXPECT_EQ(all.points_confidence.sizes(), (Shape{2, 3, 28, 42}));
  EXPECT_EQ(all.depth.sizes(), (Shape{2, 3, 28, 42, 1}));
  EXPECT_EQ(all.depth_confidence.sizes(), (Shape{2, 3, 28, 42}));
  EXPECT_GE(all.pose.slice(2, 7).min().item<float>(), 0);
  EXPECT_GT(all.depth.min().item<float>(), 0);
  EXPECT_GT(all.depth_confidence.min().item<float>(), 1);
  EXPECT_GT(all.points.min().item<float>() * -1, 0);  // both signs
  EXPECT_GT(all.points.max().item<float>(), 0);
  const vggt::VggtGeometry few =
      net->forward(images, {.points = false, .pose = false});
  EXPECT_TRUE(torch::equal(few.tokens, all.tokens));
  EXPECT_FALSE(few.pose.defined() || few.points.defined() ||
               few.depth.defined());
}

TEST_F(VggtTest, ViewsOfASceneSeeEachOtherAndNoOtherScene) {
  const torch::NoGradGuard no_grad;
  const auto net = make_tiny();
  const Tensor images = torch::rand({2, 2, 3, 28, 28});
  const vggt::VggtGeometry before = net->forward(images);
  Tensor changed = images.clone();
  changed[0][1] = torch::rand({3, 28, 28});
  const vggt::VggtGeometry after = net->forward(changed);
  for (const auto& [ours, theirs] : {std::pair{after.tokens, before.tokens},
                                     {after.pose, before.pose},
                                     {after.points, before.points}}) {
    EXPECT_GT((ours[0][0] - theirs[0][0]).norm().item<float>(), 1e-3);
    EXPECT_TRUE(torch::allclose(ours[1], theirs[1], 1e-4, 1e-5));
  }
}

TEST_F(VggtTest, TheFirstViewIsNotLikeTheOthers) {
  const torch::NoGradGuard no_grad;
  const auto net = make_tiny();
  const Tensor one = torch::rand({1, 1, 3, 28, 28});
  const Tensor tokens = net->forward(one.expand({1, 3, 3, 28, 28})).tokens;
  EXPECT_GT((tokens[0][0] - tokens[0][1]).norm().item<float>(), 1e-3);
  EXPECT_TRUE(torch::allclose(tokens[0][1], tokens[0][2], 1e-4, 1e-5));
}

// The heads take 8 images at a time.
TEST_F(VggtTest, ManyImagesAtOnceGiveWhatEachGivesAlone) {
  const torch::NoGradGuard no_grad;
  const auto net = make_tiny();
  const Tensor images = torch::rand({9, 2, 3, 28, 28});
  const Tensor points = net->forward(images).points;
  for (const int64_t i : {0, 4, 8}) {
    const Tensor alone = net->forward(images.slice(0, i, i + 1)).points;
    EXPECT_TRUE(torch::allclose(points[i], alone[0], 1e-3, 1e-4)) << i;
  }
}

TEST_F(VggtTest, HasGradientsUnlessItsParametersTakeNone) {
  const auto net = make_tiny();
  const Tensor images = torch::rand({1, 2, 3, 42, 28});
  EXPECT_TRUE(net->forward(images).points.requires_grad());
  for (Tensor& parameter : net->parameters()) parameter.requires_grad_(false);
  const vggt::VggtGeometry out = net->forward(images);
  EXPECT_FALSE(out.tokens.requires_grad() || out.pose.requires_grad() ||
               out.points.requires_grad());
}

// A confidence is 1 + exp(x), so that the sum's derivative by the bias of x is
// the sum of all confidences less 1 each.
TEST_F(VggtTest, BothConfidencesHaveGradients) {
  const auto net = make_tiny();
  const Tensor images = torch::rand({1, 2, 3, 28, 28});
  const vggt::VggtGeometry out =
      net->forward(images, {.points = true, .pose = true, .depth = true});
  for (const auto& [head, confidence] :
       {std::pair{"point_head", out.points_confidence},
        {"depth_head", out.depth_confidence}}) {
    SCOPED_TRACE(head);
    confidence.sum().backward({}, /*retain_graph=*/true);
    const auto parameters = net->named_children()[head]->named_parameters();
    const Tensor bias = parameters["scratch.output_conv2.2.bias"].grad();
    const double expected = (confidence - 1).sum().item<double>();
    EXPECT_NEAR(bias[-1].item<double>(), expected, 1e-4 * expected);
    const Tensor norm = parameters["norm.weight"].grad();
    EXPECT_TRUE(norm.isfinite().all().item<bool>());
    EXPECT_GT(norm.abs().max().item<float>(), 0);
  }
}

double difference(const Tensor& ours, const Tensor& theirs) {
  return ((ours - theirs).norm() / theirs.norm()).item<double>();
}

TEST_F(VggtTest, ASurroundingAutocastChangesNothing) {
  const torch::NoGradGuard no_grad;
  const auto net = make_tiny();
  const Tensor images = torch::rand({1, 2, 3, 28, 28});
  const vggt::VggtGeometry exact = net->forward(images);
  const tensor::Autocast mixed(at::kCPU, at::kBFloat16);
  const vggt::VggtGeometry same = net->forward(images);
  EXPECT_TRUE(torch::equal(same.tokens, exact.tokens));
  EXPECT_TRUE(torch::equal(same.points, exact.points));
}

// Deep enough for roundings to add up.
TEST_F(VggtTest, ATrunkOfHalvedWeightsStaysClose) {
  const torch::NoGradGuard no_grad;
  vggt::VggtConfig config = vggt::vggt_preset("vggt_tiny");
  config.width = 64;
  config.vit_depth = 24;
  config.depth = 24;
  const auto net = testing::random_vggt(config);
  const Tensor images = torch::rand({1, 2, 3, 42, 42});
  const vggt::VggtGeometry exact = net->forward(images);
  net->aggregator()->to(at::kBFloat16);
  const vggt::VggtGeometry rough = net->forward(images);
  EXPECT_EQ(rough.points.scalar_type(), at::kFloat);
  EXPECT_EQ(rough.tokens.scalar_type(), at::kFloat);
  EXPECT_GT(difference(rough.tokens, exact.tokens), 0);
  EXPECT_LT(difference(rough.tokens, exact.tokens), 1e-2);
  EXPECT_LT(difference(rough.pose, exact.pose), 1e-2);
}

TEST_F(VggtTest, AFrozenNetGivesTheSameAndTakesNoGradient) {
  const auto net = make_tiny();
  const Tensor images = torch::rand({1, 2, 3, 42, 28});
  const Shapes shapes = shapes_of(*net);
  const vggt::VggtGeometry expected = net->forward(images);
  vggt::FrozenVggt frozen(net, {.points = true, .pose = true});
  EXPECT_EQ(shapes_of(frozen.model()), shapes);
  for (const Tensor& parameter : net->parameters()) {
    EXPECT_FALSE(parameter.requires_grad());
  }
  for (int call = 0; call < 3; ++call) {
    const vggt::VggtGeometry out = frozen.forward(images);
    EXPECT_LT(difference(out.tokens, expected.tokens), 1e-5);
    EXPECT_LT(difference(out.pose, expected.pose), 1e-5);
    EXPECT_LT(difference(out.points, expected.points), 1e-5);
    EXPECT_FALSE(out.points.requires_grad() || out.depth.defined());
  }
}

bool allows_tf32_convolutions() {
  return at::globalContext().allowTF32CuDNN(at::Float32Op::CONV);
}

// PyTorch's default, with which the original runs; a setting for GPUs that any
// machine has.
TEST_F(VggtTest, FrozenConvolutionsMayUseTf32InATrainingThatDoesNot) {
  const Tensor images = torch::rand({1, 2, 3, 28, 28});
  const auto net = make_tiny();
  vggt::FrozenVggt frozen(net, {.points = true, .pose = true});
  std::map<bool, int> num_convolutions;  // By whether TF32 is allowed.
  const testing::SeenOperations seen([&](const at::RecordFunction& operation) {
    if (std::string_view(operation.name()) == "aten::convolution") {
      ++num_convolutions[allows_tf32_convolutions()];
    }
  });
  engine::apply_precision({.name = "fp32"});
  frozen.forward(images);
  EXPECT_FALSE(allows_tf32_convolutions());
  EXPECT_EQ(num_convolutions[false], 0);
  EXPECT_GT(num_convolutions[true], 10);
  // One that is trained keeps the precision of the training.
  num_convolutions.clear();
  net->forward(images);
  EXPECT_EQ(num_convolutions[true], 0);
  engine::apply_precision({.name = "tf32", .allows_tf32 = true});
  frozen.forward(images);
  EXPECT_TRUE(allows_tf32_convolutions());
}

TEST_F(VggtTest, RefusesImagesThatPatchesDoNotFill) {
  const auto net = make_tiny();
  const std::string words = refusal<ConfigError>(
      [&] { net->forward(torch::rand({1, 2, 3, 28, 30})); });
  EXPECT_TRUE(contains(words, "30 x 28")) << words;
  EXPECT_TRUE(contains(words, "image_size")) << words;
  EXPECT_TRUE(contains(
      refusal<ConfigError>([&] { net->forward(torch::rand({2, 3, 28, 28})); }),
      "[2, 3, 28, 28]"));
}

TEST_F(VggtTest, RefusesSizesThatDoNotFit) {
  EXPECT_TRUE(contains(
      refusal<ConfigError>([] { vggt::vggt_preset("vggt_2b"); }), "vggt_tiny"));
  const auto refused =
      [](const std::function<void(vggt::VggtConfig&)>& change) {
        vggt::VggtConfig config = vggt::vggt_preset("vggt_tiny");
        change(config);
        return refusal<ConfigError>([&] { const vggt::Vggt net(config); });
      };
  EXPECT_TRUE(contains(refused([](auto& c) { c.width = 20; }), "width"));
  EXPECT_TRUE(contains(refused([](auto& c) { c.image_size = 30; }), "14"));
  EXPECT_TRUE(contains(refused([](auto& c) { c.depth = 3; }), "dpt_layers"));
  EXPECT_TRUE(contains(refused([](auto& c) { c.dpt_features = 4; }), "8"));
}

}  // namespace
}  // namespace lockstep

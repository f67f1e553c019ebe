// VGGT and its gradients are those of an independent implementation; the other
// side is python/vggt_reference.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "interop/parity.h"
#include "lockstep/checkpoint.h"
#include "lockstep/models/vggt/vggt.h"
#include "support/random_vggt.h"

namespace lockstep {
namespace {

using testing::expect_close;
using torch::Tensor;

struct Case {
  std::string name;
  vggt::VggtConfig config = vggt::vggt_preset("vggt_tiny");
  std::vector<int64_t> shape = {2, 3, 3, 28, 28};
  at::ScalarType dtype = at::kFloat;
  double tolerance = 1e-4;
  std::shared_ptr<vggt::Vggt> net = {};
  Tensor images = {};
};

void make(Case& one) {
  one.net = testing::random_vggt(one.config);
  one.images = torch::rand(one.shape);
}

Tree numbers(const std::array<int64_t, 4>& values) {
  Tree::List list;
  for (const int64_t value : values) list.push_back(value);
  return Tree(list);
}

Tree case_tree(const Case& one) {
  const vggt::VggtConfig& config = one.config;
  Tree tree;
  Tree& sizes = tree["sizes"];
  sizes["image_size"] = config.image_size;
  sizes["patch"] = config.patch;
  sizes["width"] = config.width;
  sizes["depth"] = config.depth;
  sizes["heads"] = config.num_heads;
  sizes["registers"] = config.num_registers;
  sizes["vit_depth"] = config.vit_depth;
  sizes["camera_depth"] = config.camera_depth;
  sizes["camera_iterations"] = config.camera_iterations;
  sizes["dpt_features"] = config.dpt_features;
  sizes["dpt_outs"] = numbers(config.dpt_outs);
  sizes["dpt_layers"] = numbers(config.dpt_layers);
  sizes["dpt_hidden"] = config.dpt_hidden;
  tree["weights"] = module_state(*one.net);
  tree["images"] = one.images;
  tree["is_double"] = one.dtype == at::kDouble ? 1 : 0;
  tree["with_gradients"] = one.dtype == at::kDouble ? 1 : 0;
  return tree;
}

void expect_equal_trunk(const Case& one, const Tensor& images,
                        const TreeView& theirs) {
  const auto expect = [&](const Tensor& ours, const TreeView& other,
                          const std::string& what) {
    expect_close(ours.detach(), other.as_tensor(),
                 {.what = what, .tolerance = one.tolerance});
  };
  vggt::VggtAggregator& trunk = *one.net->aggregator();
  expect(trunk.patch_tokens(images), theirs.at("patch_tokens"), "ViT");
  std::set<int64_t> all;
  for (int64_t i = 0; i < one.config.depth; ++i) all.insert(i);
  const auto layers = trunk.forward(images, all);
  ASSERT_EQ(layers.size(), theirs.at("layers").as_dict().size());
  for (const auto& [i, layer] : layers) {
    expect(torch::cat({layer.frame, layer.global}, 3),
           theirs.at("layers").at(std::to_string(i)),
           "layer " + std::to_string(i));
  }
}

// A ReLU near its bend goes the other way by a rounding, so that gradients need
// float64.
void expect_equal_gradients(const Case& one, const vggt::VggtGeometry& out,
                            const TreeView& theirs) {
  const Tensor total =
      out.tokens.square().mean() + out.pose.square().mean() +
      out.points.square().mean() + out.points_confidence.square().mean() +
      out.depth.square().mean() + out.depth_confidence.square().mean();
  total.backward();
  size_t num_compared = 0;
  for (const auto& item : one.net->named_parameters()) {
    const Tensor& gradient = item.value().grad();
    if (!gradient.defined()) continue;
    ++num_compared;
    expect_close(gradient, theirs.at("gradients").at(item.key()).as_tensor(),
                 {.what = item.key(), .tolerance = one.tolerance});
  }
  EXPECT_EQ(num_compared, theirs.at("gradients").as_dict().size());
}

void expect_equal_results(const Case& one, const TreeView& theirs) {
  const Tensor images = one.images.to(one.dtype);
  expect_equal_trunk(one, images, theirs);
  const vggt::VggtGeometry out =
      one.net->forward(images, {.points = true, .pose = true, .depth = true});
  const std::vector<std::pair<std::string, Tensor>> all = {
      {"tokens", out.tokens}, {"pose", out.pose},
      {"points", out.points}, {"points_conf", out.points_confidence},
      {"depth", out.depth},   {"depth_conf", out.depth_confidence}};
  for (const auto& [name, ours] : all) {
    expect_close(ours.detach(), theirs.at(name).as_tensor(),
                 {.what = name, .tolerance = one.tolerance});
  }
  if (one.dtype == at::kDouble) expect_equal_gradients(one, out, theirs);
}

vggt::VggtConfig larger() {
  vggt::VggtConfig config = vggt::vggt_preset("vggt_tiny");
  config.image_size = 42;
  config.width = 24;
  config.num_heads = 3;
  config.vit_depth = 3;
  config.depth = 5;
  config.num_registers = 3;
  config.camera_depth = 2;
  config.camera_iterations = 3;
  config.dpt_features = 16;
  config.dpt_outs = {4, 8, 12, 20};
  config.dpt_layers = {0, 1, 3, 4};
  config.dpt_hidden = 6;
  return config;
}

TEST(VggtParity, TokensPosesMapsAndGradientsEqualPython) {
  // Threads that wait for each other are slow where others work too.
  at::set_num_threads(1);
  torch::manual_seed(11);
  std::vector<Case> cases = {
      {.name = "tiny"},
      {.name = "larger", .config = larger(), .shape = {1, 2, 3, 42, 42}},
      {.name = "other image", .config = larger(), .shape = {2, 2, 3, 56, 28}},
      {.name = "smaller image and one view",
       .config = larger(),
       .shape = {2, 1, 3, 28, 28}},
      {.name = "exact", .dtype = at::kDouble, .tolerance = 1e-9},
      {.name = "exact other image",
       .config = larger(),
       .shape = {5, 2, 3, 28, 70},
       .dtype = at::kDouble,
       .tolerance = 1e-9}};
  Tree trees;
  for (Case& one : cases) {
    make(one);
    trees[one.name] = case_tree(one);
  }
  const Tree results = testing::run_reference("vggt_reference.py", trees);
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    one.net->to(one.dtype);
    expect_equal_results(one, results.at(one.name));
  }
}

}  // namespace
}  // namespace lockstep

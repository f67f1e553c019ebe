// The model of the recipe dit, its loss, gradients and sampler are those of an
// independent implementation; the other side is python/dit_reference.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "interop/parity.h"
#include "lockstep/checkpoint.h"
#include "lockstep/models/dit/flow.h"
#include "lockstep/models/dit/model.h"

namespace lockstep {
namespace {

using testing::expect_close;
using torch::Tensor;

constexpr int64_t kBatch = 3;
constexpr double kTolerance = 1e-5;
constexpr dit::FlowSteps kSteps = {.count = 3, .max_frames = 4};

const std::vector<std::pair<std::string, dit::DitConfig>> kCases = {
    {"guide", {.num_registers = 4}},
    {"registers0", {.image_size = 16, .width = 64, .depth = 3, .num_heads = 2}},
    {"registers4",
     {.width = 48, .depth = 2, .num_heads = 3, .num_registers = 4}},
    {"registers8",
     {.patch = 4, .width = 64, .depth = 3, .num_heads = 4, .num_registers = 8}},
    {"registers16",
     {.channels = 1,
      .width = 32,
      .depth = 2,
      .num_heads = 1,
      .num_classes = 5,
      .num_registers = 16}},
};

Tree sizes_tree(const dit::DitConfig& config) {
  Tree sizes;
  sizes["size"] = config.image_size;
  sizes["patch"] = config.patch;
  sizes["channels"] = config.channels;
  sizes["dim"] = config.width;
  sizes["depth"] = config.depth;
  sizes["heads"] = config.num_heads;
  sizes["classes"] = config.num_classes;
  sizes["registers"] = config.num_registers;
  return sizes;
}

struct Case {
  std::shared_ptr<dit::Dit> model;
  Tensor images;
  dit::FlowDraws draws;
  Tensor guidance;
};

Case make_case(const dit::DitConfig& config) {
  Case made{.model = std::make_shared<dit::Dit>(config),
            .images = {},
            .draws = {},
            .guidance = torch::tensor({1.0F, 2.5F, 5.0F})};
  testing::shake(*made.model, 0.05);
  const std::vector<int64_t> shape = {kBatch, config.channels,
                                      config.image_size, config.image_size};
  made.images = torch::rand(shape) * 2 - 1;
  made.draws = {.times = torch::rand({kBatch}),
                .noise = torch::randn(shape),
                .labels = torch::tensor(
                    {int64_t{0}, config.num_classes - 1, config.num_classes})};
  return made;
}

Tree case_tree(const Case& made) {
  Tree tree;
  tree["sizes"] = sizes_tree(made.model->config());
  tree["weights"] = module_state(*made.model);
  tree["x"] = made.images;
  tree["t"] = made.draws.times;
  tree["z"] = made.draws.noise;
  tree["y"] = made.draws.labels;
  tree["w"] = made.guidance;
  return tree;
}

void expect_equal_training(const Case& made, const TreeView& theirs) {
  dit::Dit& model = *made.model;
  const Tensor loss = dit::flow_losses(model, made.images, made.draws).mean();
  loss.backward();
  expect_close(loss.detach(), theirs.at("loss").as_tensor(),
               {.what = "loss", .tolerance = kTolerance});
  testing::expect_equal_gradients(model, theirs.at("gradients"), kTolerance);
}

void expect_equal_forward(const Case& made, const TreeView& theirs) {
  const torch::NoGradGuard no_grad;
  const Tensor t = made.draws.times.view({-1, 1, 1, 1});
  const Tensor z_t = (1 - t) * made.images + t * made.draws.noise;
  expect_close(made.model->forward(z_t, made.draws.times, made.draws.labels),
               theirs.at("velocity").as_tensor(),
               {.what = "velocity", .tolerance = kTolerance});
  const Tensor course = dit::sample_flow(*made.model,
                                         {.noise = made.draws.noise,
                                          .labels = made.draws.labels,
                                          .guidance = made.guidance},
                                         kSteps);
  // Images are rounded to 256 levels.
  const Tensor last = course.select(1, -1).to(at::kFloat) / 127.5 - 1;
  EXPECT_LE((last - theirs.at("images").as_tensor()).abs().max().item<float>(),
            0.5F / 127.5F + 1e-3F);
}

TEST(DitParity, ForwardLossGradientsAndSamplesEqualThoseOfPython) {
  // Threads that wait for each other are slow where others work too.
  at::set_num_threads(1);
  torch::manual_seed(5);
  Tree cases;
  std::vector<Case> made;
  for (const auto& [name, config] : kCases) {
    made.push_back(make_case(config));
    cases[name] = case_tree(made.back());
  }
  const Tree results = testing::run_reference("dit_reference.py", cases);
  for (size_t i = 0; i < kCases.size(); ++i) {
    const auto& [name, config] = kCases[i];
    SCOPED_TRACE(name);
    const TreeView theirs = results.at(name);
    expect_close(made[i].model->named_parameters()["pos_embed"],
                 theirs.at("pos_embed").as_tensor(),
                 {.what = "pos_embed", .tolerance = kTolerance});
    expect_equal_training(made[i], theirs);
    expect_equal_forward(made[i], theirs);
    // Back again, by name.
    dit::Dit read(config);
    EXPECT_TRUE(load_module_state(read, theirs.at("model")).is_complete());
  }
  EXPECT_EQ(results.at("guide").at("num_trainable").as_int(), 32'477'221);
}

}  // namespace
}  // namespace lockstep

// The image model of the recipe jit, its loss, gradients and samplers are those
// of an independent implementation; the other side is
// python/jit_image_reference.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "interop/parity.h"
#include "lockstep/checkpoint.h"
#include "lockstep/models/jit/image_flow.h"
#include "lockstep/models/jit/image_model.h"

namespace lockstep {
namespace {

using testing::expect_close;
using torch::Tensor;

constexpr int64_t kBatch = 3;
constexpr double kTolerance = 1e-5;
constexpr int64_t kSteps = 5;
// Times are multiples of 0.2: some lie inside, some outside.
constexpr diffusion::GuidanceInterval kInside = {.low = 0.1, .high = 0.7};
constexpr diffusion::GuidanceInterval kFromZero = {.low = 0, .high = 1};

struct Sizes {
  std::string name;
  jit::JitImageConfig model;
  jit::JitObjective objective = {};
  diffusion::GuidanceInterval interval = kInside;
};

// The paper's sizes in small, and the patches.
const std::vector<Sizes> kCases = {
    {"b4",
     {.image_size = 16,
      .patch = 4,
      .width = 48,
      .depth = 6,
      .num_heads = 3,
      .num_classes = 7,
      .bottleneck = 12,
      .context_start = 2}},
    {"b8_two_noise",
     {.image_size = 24,
      .patch = 8,
      .width = 32,
      .depth = 3,
      .num_heads = 2,
      .num_classes = 4,
      .bottleneck = 16,
      .num_context = 5,
      .context_start = 0},
     {.noise_scale = 2, .t_eps = 0.3},
     kFromZero},
    {"l16",
     {.image_size = 64,
      .patch = 16,
      .width = 64,
      .depth = 4,
      .num_heads = 4,
      .num_classes = 3,
      .bottleneck = 32,
      .context_start = 1}},
    {"h32",
     {.image_size = 64,
      .patch = 32,
      .width = 40,
      .depth = 5,
      .num_heads = 2,
      .num_classes = 2,
      .bottleneck = 24,
      .num_context = 8,
      .context_start = 4}},
};

Tree sizes_tree(const jit::JitImageConfig& config) {
  Tree sizes;
  sizes["size"] = config.image_size;
  sizes["patch"] = config.patch;
  sizes["channels"] = config.channels;
  sizes["dim"] = config.width;
  sizes["depth"] = config.depth;
  sizes["heads"] = config.num_heads;
  sizes["classes"] = config.num_classes;
  sizes["bottleneck"] = config.bottleneck;
  sizes["context"] = config.num_context;
  sizes["start"] = config.context_start;
  return sizes;
}

struct Case {
  Sizes sizes;
  std::shared_ptr<jit::JitImage> model;
  Tensor images;
  jit::JitImageDraws draws;
  Tensor guidance;
};

Case make_case(const Sizes& sizes) {
  const jit::JitImageConfig& config = sizes.model;
  Case made{.sizes = sizes,
            .model = std::make_shared<jit::JitImage>(config),
            .images = {},
            .draws = {},
            .guidance = torch::tensor({1.0F, 2.9F, 4.0F})};
  testing::shake(*made.model, 0.1);
  const std::vector<int64_t> shape = {kBatch, config.channels,
                                      config.image_size, config.image_size};
  made.images = torch::rand(shape) * 2 - 1;
  // The last one is nearer to its image than t_eps.
  made.draws = {.times = torch::tensor({0.1F, 0.6F, 0.97F}),
                .noise = torch::randn(shape),
                .labels = torch::tensor(
                    {int64_t{0}, config.num_classes - 1, config.num_classes})};
  return made;
}

Tree case_tree(const Case& made) {
  Tree tree;
  tree["sizes"] = sizes_tree(made.sizes.model);
  tree["objective"]["noise_scale"] = made.sizes.objective.noise_scale;
  tree["objective"]["t_eps"] = made.sizes.objective.t_eps;
  tree["sampling"]["low"] = made.sizes.interval.low;
  tree["sampling"]["high"] = made.sizes.interval.high;
  tree["sampling"]["steps"] = kSteps;
  tree["weights"] = module_state(*made.model);
  tree["x"] = made.images;
  tree["t"] = made.draws.times;
  tree["noise"] = made.draws.noise;
  tree["y"] = made.draws.labels;
  tree["w"] = made.guidance;
  return tree;
}

void expect_equal_training(const Case& made, const TreeView& theirs) {
  jit::JitImage& model = *made.model;
  const Tensor loss = jit::jit_image_losses(model, made.images, made.draws,
                                            made.sizes.objective)
                          .mean();
  loss.backward();
  expect_close(loss.detach(), theirs.at("loss").as_tensor(),
               {.what = "loss", .tolerance = kTolerance});
  testing::expect_equal_gradients(model, theirs.at("gradients"), kTolerance);
}

void expect_equal_sampling(const Case& made, const TreeView& theirs) {
  const torch::NoGradGuard no_grad;
  expect_close(made.model->forward(made.draws.noise, made.draws.times,
                                   made.draws.labels),
               theirs.at("predicted").as_tensor(),
               {.what = "predicted", .tolerance = kTolerance});
  for (const auto& [name, method] :
       {std::pair("euler", jit::OdeMethod::kEuler),
        std::pair("heun", jit::OdeMethod::kHeun)}) {
    const Tensor images =
        jit::sample_jit_images(*made.model,
                               {.noise = made.draws.noise,
                                .labels = made.draws.labels,
                                .guidance = made.guidance},
                               {.objective = made.sizes.objective,
                                .method = method,
                                .num_steps = kSteps,
                                .interval = made.sizes.interval});
    expect_close(images, theirs.at("images").at(name).as_tensor(),
                 {.what = name, .tolerance = kTolerance});
  }
}

void expect_equal_names(const Case& made, const TreeView& theirs) {
  const auto names = theirs.at("names").as_list();
  const auto ours = made.model->named_parameters();
  ASSERT_EQ(names.size(), ours.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(theirs.at("names").at(i).as_string(), ours[i].key());
  }
  // Back again, by name.
  jit::JitImage read(made.sizes.model);
  EXPECT_TRUE(load_module_state(read, theirs.at("model")).is_complete());
}

TEST(JitImageParity, ForwardLossGradientsAndSamplesEqualThoseOfPython) {
  // Threads that wait for each other are slow where others work too.
  at::set_num_threads(1);
  torch::manual_seed(5);
  Tree cases;
  std::vector<Case> made;
  for (const Sizes& sizes : kCases) {
    made.push_back(make_case(sizes));
    cases[sizes.name] = case_tree(made.back());
  }
  const Tree results = testing::run_reference("jit_image_reference.py", cases);
  for (const Case& one : made) {
    SCOPED_TRACE(one.sizes.name);
    const TreeView theirs = results.at(one.sizes.name);
    expect_close(one.model->named_parameters()["net.pos_embed"],
                 theirs.at("pos_embed").as_tensor(),
                 {.what = "pos_embed", .tolerance = kTolerance});
    expect_equal_training(one, theirs);
    expect_equal_sampling(one, theirs);
    expect_equal_names(one, theirs);
  }
}

}  // namespace
}  // namespace lockstep

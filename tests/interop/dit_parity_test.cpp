// The model of the recipe dit, its loss, gradients and sampler are those of an
// independent implementation; the other side is python/dit_reference.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/checkpoint/file.h"
#include "lockstep/checkpoint/module_state.h"
#include "lockstep/recipes/dit/flow.h"
#include "lockstep/recipes/dit/model.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr int64_t kBatch = 3;
constexpr double kTolerance = 1e-5;
constexpr FlowSteps kSteps = {.count = 3, .max_frames = 4};

const std::vector<std::pair<std::string, DitConfig>> kCases = {
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

// What begins as zero would hide what comes before it.
void shake(torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  for (Tensor& parameter : model.parameters()) {
    if (parameter.requires_grad()) {
      parameter.add_(0.05 * torch::randn_like(parameter));
    }
  }
}

Tree sizes_tree(const DitConfig& config) {
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
  std::shared_ptr<Dit> model;
  Tensor pictures;
  FlowDraws draws;
  Tensor guidance;
};

Case make_case(const DitConfig& config) {
  Case made{.model = std::make_shared<Dit>(config),
            .pictures = {},
            .draws = {},
            .guidance = torch::tensor({1.0F, 2.5F, 5.0F})};
  shake(*made.model);
  const std::vector<int64_t> shape = {kBatch, config.channels,
                                      config.image_size, config.image_size};
  made.pictures = torch::rand(shape) * 2 - 1;
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
  tree["x"] = made.pictures;
  tree["t"] = made.draws.times;
  tree["z"] = made.draws.noise;
  tree["y"] = made.draws.labels;
  tree["w"] = made.guidance;
  return tree;
}

void expect_close(const Tensor& ours, const Tensor& theirs,
                  const std::string& what) {
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  if (ours.numel() == 0) return;
  const double size = theirs.norm().item<double>();
  EXPECT_GT(size, 0) << what;
  EXPECT_LE((ours - theirs).norm().item<double>(), kTolerance * size) << what;
}

void expect_equal_training(const Case& made, const TreeView& theirs) {
  Dit& model = *made.model;
  const Tensor loss = flow_losses(model, made.pictures, made.draws).mean();
  loss.backward();
  expect_close(loss.detach(), theirs.at("loss").as_tensor(), "loss");
  const TreeView gradients = theirs.at("gradients");
  size_t num_compared = 0;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    expect_close(item.value().grad(), gradients.at(item.key()).as_tensor(),
                 item.key());
    ++num_compared;
  }
  EXPECT_EQ(num_compared, gradients.as_dict().size());
}

void expect_equal_forward(const Case& made, const TreeView& theirs) {
  const torch::NoGradGuard no_grad;
  const Tensor t = made.draws.times.view({-1, 1, 1, 1});
  const Tensor z_t = (1 - t) * made.pictures + t * made.draws.noise;
  expect_close(made.model->forward(z_t, made.draws.times, made.draws.labels),
               theirs.at("velocity").as_tensor(), "velocity");
  const Tensor course = sample_flow(*made.model,
                                    {.noise = made.draws.noise,
                                     .labels = made.draws.labels,
                                     .guidance = made.guidance},
                                    kSteps);
  // Pictures are rounded to 256 levels.
  const Tensor last = course.select(1, -1).to(at::kFloat) / 127.5 - 1;
  EXPECT_LE(
      (last - theirs.at("pictures").as_tensor()).abs().max().item<float>(),
      0.5F / 127.5F + 1e-3F);
}

TEST(DitParity, ForwardLossGradientsAndSamplesEqualThoseOfPython) {
  // Threads that wait for each other are slow where others work too.
  at::set_num_threads(1);
  torch::manual_seed(5);
  const testing::TempDir folder;
  Tree cases;
  std::vector<Case> made;
  for (const auto& [name, config] : kCases) {
    made.push_back(make_case(config));
    cases[name] = case_tree(made.back());
  }
  const auto in = folder.path() / "cases.pt";
  const auto out = folder.path() / "results.pt";
  save_checkpoint(in, cases);
  const auto python =
      testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/dit_reference.py",
                    in.string(), out.string()},
                   {.environment = {{"OMP_NUM_THREADS", "1"}},
                    .folder = "",
                    .timeout_seconds = 240});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  const Tree results = load_checkpoint(out);
  for (size_t i = 0; i < kCases.size(); ++i) {
    const auto& [name, config] = kCases[i];
    SCOPED_TRACE(name);
    const TreeView theirs = results.at(name);
    expect_close(made[i].model->named_parameters()["pos_embed"],
                 theirs.at("pos_embed").as_tensor(), "pos_embed");
    expect_equal_training(made[i], theirs);
    expect_equal_forward(made[i], theirs);
    // Back again, by name.
    Dit read(config);
    EXPECT_TRUE(load_module_state(read, theirs.at("model")).is_complete());
  }
  EXPECT_EQ(results.at("guide").at("num_trainable").as_int(), 32'477'221);
}

}  // namespace
}  // namespace lockstep

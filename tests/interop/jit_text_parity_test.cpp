// The model of the recipe jit for texts, its loss, gradients and sampler are
// those of an independent implementation that never leaves a half out; the
// other side is python/jit_text_reference.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "interop/parity.h"
#include "lockstep/checkpoint.h"
#include "lockstep/diffusion/ddim.h"
#include "lockstep/models/jit/text_model.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr double kTolerance = 1e-5;
constexpr int64_t kSteps = 4;

struct Kind {
  std::string name = {};
  jit::JitTextConfig config = {};
  jit::TextCondition condition = jit::TextCondition::kNone;
};

const std::vector<Kind> kKinds = {
    {"guide", {.depth = 1}},
    {"guide_prompt", {.depth = 1}, jit::TextCondition::kPrompt},
    {"patch4",
     {.image_size = 16, .patch = 4, .width = 48, .depth = 3, .num_heads = 3}},
    {"patch2_prompt",
     {.image_size = 8, .patch = 2, .width = 64, .depth = 2, .num_heads = 4},
     jit::TextCondition::kPrompt},
    {"patch8_prompt",
     {.image_size = 16,
      .patch = 8,
      .width = 32,
      .depth = 3,
      .num_heads = 2,
      .mlp_ratio = 2},
     jit::TextCondition::kPrompt},
    {"patch1",
     {.image_size = 6, .patch = 1, .width = 32, .depth = 2, .num_heads = 1}},
};

struct Case {
  std::shared_ptr<jit::JitText> model = {};
  Tensor clean = {};
  Tensor mask = {};
  Tensor times = {};
  Tensor noise = {};
  Tensor condition = {};
};

// The first pixels of each: a few, some rows and a part, all but one, all,
// none.
Tensor make_mask(int64_t side) {
  const int64_t all = side * side;
  const Tensor counts =
      torch::tensor({int64_t{3}, all / 2 + 1, all - 1, all, int64_t{0}});
  return (torch::arange(all).unsqueeze(0) < counts.unsqueeze(1))
      .view({-1, side, side})
      .to(at::kFloat);
}

Case make_case(const Kind& kind) {
  Case made{.model = std::make_shared<jit::JitText>(kind.config)};
  {
    const torch::NoGradGuard no_grad;
    for (Tensor& parameter : made.model->parameters()) {
      parameter.add_(0.05 * torch::randn_like(parameter));
    }
  }
  made.mask = make_mask(kind.config.image_size);
  const std::vector<int64_t> shape = {
      made.mask.size(0), 3, kind.config.image_size, kind.config.image_size};
  made.clean = torch::rand(shape);
  made.noise = torch::randn(shape);
  made.times = torch::tensor({999, 0, 500, 37, 800}, at::kLong);
  if (kind.condition == jit::TextCondition::kPrompt) {
    made.condition = torch::rand(shape);
  }
  return made;
}

Tree case_tree(const Case& made) {
  const jit::JitTextConfig& config = made.model->config();
  Tree tree;
  tree["sizes"]["size"] = config.image_size;
  tree["sizes"]["patch"] = config.patch;
  tree["sizes"]["dim"] = config.width;
  tree["sizes"]["depth"] = config.depth;
  tree["sizes"]["heads"] = config.num_heads;
  tree["sizes"]["ratio"] = config.mlp_ratio;
  tree["weights"] = module_state(*made.model);
  tree["x"] = made.clean;
  tree["mask"] = made.mask;
  tree["t"] = made.times;
  tree["noise"] = made.noise;
  if (made.condition.defined()) tree["condition"] = made.condition;
  return tree;
}

void expect_close(const Tensor& ours, const Tensor& theirs,
                  const std::string& what) {
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  EXPECT_FALSE(ours.isnan().any().item<bool>()) << what;
  EXPECT_LE((ours - theirs).norm().item<double>(),
            kTolerance * theirs.norm().item<double>())
      << what;
}

void expect_equal_training(const Case& made, const TreeView& theirs) {
  const Tensor a = (1 - made.times / 1000.0).view({-1, 1, 1, 1});
  const Tensor predicted =
      made.model->forward({.images = a * made.clean + (1 - a) * made.noise,
                           .times = made.times,
                           .condition = made.condition,
                           .mask = made.mask});
  expect_close(predicted.detach(), theirs.at("predicted").as_tensor(),
               "predicted");
  const Tensor error =
      (predicted - made.clean).square() * made.mask.unsqueeze(1);
  const Tensor loss = error.sum() / made.mask.sum();
  loss.backward();
  expect_close(loss.detach(), theirs.at("loss").as_tensor(), "loss");
  const TreeView gradients = theirs.at("gradients");
  size_t num_compared = 0;
  for (const auto& item : made.model->named_parameters()) {
    const auto expected = gradients.find(item.key());
    ASSERT_EQ(item.value().grad().defined(), expected.has_value())
        << item.key();
    if (!expected) continue;
    expect_close(item.value().grad(), expected->as_tensor(), item.key());
    ++num_compared;
  }
  EXPECT_EQ(num_compared, gradients.as_dict().size());
}

void expect_equal_samples(const Case& made, const TreeView& theirs) {
  const torch::NoGradGuard no_grad;
  const Tensor images = diffusion::sample_ddim(
      [&](const Tensor& x, int64_t t) {
        return made.model->forward(
            {.images = x,
             .times = torch::full({x.size(0)}, t, at::kLong),
             .condition = made.condition});
      },
      made.noise, {.num_steps = kSteps});
  expect_close(images, theirs.at("images").as_tensor(), "images");
}

TEST(JitTextParity, ForwardLossGradientsAndSamplesEqualThoseOfPython) {
  // Threads that wait for each other are slow where others work too.
  at::set_num_threads(1);
  torch::manual_seed(5);
  Tree cases;
  std::vector<Case> made;
  for (const Kind& kind : kKinds) {
    made.push_back(make_case(kind));
    cases[kind.name] = case_tree(made.back());
  }
  const Tree results = testing::run_reference("jit_text_reference.py", cases);
  for (size_t i = 0; i < kKinds.size(); ++i) {
    SCOPED_TRACE(kKinds[i].name);
    const TreeView theirs = results.at(kKinds[i].name);
    expect_close(made[i].model->named_buffers()["time_embed.emb"],
                 theirs.at("emb").as_tensor(), "time_embed.emb");
    expect_equal_training(made[i], theirs);
    expect_equal_samples(made[i], theirs);
    // Back again, by name.
    jit::JitText read(kKinds[i].config);
    EXPECT_TRUE(load_module_state(read, theirs.at("model")).is_complete());
  }
}

}  // namespace
}  // namespace lockstep

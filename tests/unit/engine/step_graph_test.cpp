// StepGraph where there is no GPU: the same steps, without graphs.
#include "lockstep/step_graph.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "lockstep/fused.h"
#include "lockstep/optim/gradient_step.h"
#include "support/messages.h"

namespace lockstep {
namespace {

using torch::Tensor;

World cpu_world() {
  return World::from_environment({.device = DeviceChoice::kCpu}, {});
}

struct Problem {
  Problem() {
    torch::manual_seed(3);
    net = torch::nn::Linear(4, 2);
    x = torch::randn({16, 4});
    y = torch::randn({16, 2});
  }
  Tensor loss(const Tensor& in, const Tensor& target) {
    return torch::mse_loss(net(in), target);
  }

  torch::nn::Linear net{nullptr};
  Tensor x;
  Tensor y;
};

TEST(StepGraph, StepsAreThoseOfALoopByHand) {
  Problem by_hand;
  AdamW optimizer(by_hand.net->parameters());
  std::vector<float> losses;
  for (int i = 1; i <= 20; ++i) {
    const Tensor loss = by_hand.loss(by_hand.x, by_hand.y);
    losses.push_back(loss.item<float>());
    loss.backward();
    optim::prepare_gradients(by_hand.net->parameters(), {}, 0.5);
    optimizer.set_lr(0.01 * i);
    optimizer.step_and_clear();
  }

  const World world = cpu_world();
  const TrainingStream stream(world);
  Problem ours;
  AdamW own(ours.net->parameters());
  StepGraph step(
      world, own,
      [&](const StepGraph::Tensors& in) { return ours.loss(in[0], in[1]); },
      {.max_grad_norm = 0.5});
  for (int i = 1; i <= 20; ++i) {
    const Tensor loss = step.run(0.01 * i, {ours.x, ours.y});
    EXPECT_EQ(loss.item<float>(), losses[static_cast<size_t>(i - 1)]) << i;
  }
  EXPECT_TRUE(ours.net->weight.equal(by_hand.net->weight));
  EXPECT_EQ(step.num_replays(), 0);
  EXPECT_EQ(step.problem(), "");
}

TEST(StepGraph, AStepWithoutAFiniteGradientChangesNothing) {
  const World world = cpu_world();
  Problem ours;
  const Tensor before = ours.net->weight.detach().clone();
  Sgd optimizer(ours.net->parameters());
  StepGraph step(world, optimizer, [&](const StepGraph::Tensors& in) {
    return ours.loss(in[0] * std::numeric_limits<float>::infinity(), in[1]);
  });
  step.run(0.1, {ours.x, ours.y});
  EXPECT_TRUE(ours.net->weight.equal(before));
}

TEST(StepGraph, InputsOfAnotherDeviceAreRefused) {
  const World world = cpu_world();
  Problem ours;
  Sgd optimizer(ours.net->parameters());
  StepGraph step(world, optimizer, [&](const StepGraph::Tensors& in) {
    return ours.loss(in[0], in[1]);
  });
  const auto message = [&](const StepGraph::Tensors& inputs) -> std::string {
    try {
      step.run(0.1, inputs);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  testing::expect_in(message({ours.x, ours.y.to(torch::kMeta)}),
                     "input 1 is on meta, the world is on cpu; move it with "
                     "to(world.device())");
  testing::expect_in(message({Tensor(), ours.y}), "input 0 is undefined");
}

// On the CPU they are the operations that they stand for, bit for bit.
TEST(Fused, LayersAreTheirCompositionOnTheCpu) {
  torch::manual_seed(4);
  const Tensor x = torch::randn({2, 5, 16});
  const Tensor weight = torch::randn({24, 16});
  const Tensor bias = torch::randn({24});
  EXPECT_TRUE(
      fused_linear(x, weight, bias).equal(torch::linear(x, weight, bias)));
  EXPECT_TRUE(
      fused_linear_activation(x, weight, bias, FusedActivation::kGeluTanh)
          .equal(at::gelu(torch::linear(x, weight, bias), "tanh")));
  const auto halves = torch::linear(x, weight, bias).chunk(2, -1);
  EXPECT_TRUE(fused_linear_activation(x, weight, bias, FusedActivation::kSwiGlu)
                  .equal(torch::silu(halves[0]) * halves[1]));
  const Tensor branch = torch::randn({2, 5, 16});
  const FusedResidualNormResult normed = fused_residual_norm(
      x, {.branch = branch, .is_layer_norm = true, .eps = 1e-5});
  EXPECT_TRUE(normed.sum.equal(x + branch));
  EXPECT_TRUE(normed.normed.allclose(
      torch::layer_norm(x + branch, {16}, {}, {}, 1e-5), 1e-5, 1e-6));
}

}  // namespace
}  // namespace lockstep

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "lockstep/optimizer.h"

namespace lockstep {
namespace {

using torch::Tensor;

struct Training {
  std::vector<Tensor> parameters;
  std::unique_ptr<Optimizer> optimizer;

  explicit Training(const std::string& kind) {
    for (const int64_t size : {3, 5, 7}) {
      parameters.push_back(torch::linspace(-1, 1, size).requires_grad_());
    }
    optimizer = make_optimizer(
        kind,
        {{.name = "a", .parameters = {parameters[0], parameters[1]}},
         {.name = "b", .parameters = {parameters[2]}, .lr_scale = 0.5}},
        {.lr = 0.1, .weight_decay = 0.02, .momentum = 0.9});
  }

  void train(int first, int last) {
    for (int step = first; step < last; ++step) {
      for (const Tensor& p : parameters) {
        p.mutable_grad() = p.detach().sin() + 0.1 * step;
      }
      optimizer->step_and_clear();
    }
  }
};

OptimizerState copy_of(OptimizerState state) {
  for (auto& named : state.parameters) {
    for (auto& [name, tensor] : named) tensor = tensor.clone();
  }
  return state;
}

TEST(OptimizerState, ALoadedOptimizerGoesOnWithTheSameBits) {
  for (const std::string kind : {"adamw", "adam", "sgd"}) {
    SCOPED_TRACE(kind);
    Training whole(kind);
    whole.train(0, 4);
    whole.optimizer->set_lr(0.03);
    const OptimizerState saved = copy_of(whole.optimizer->state());
    Training resumed(kind);
    for (size_t i = 0; i < 3; ++i) {
      resumed.parameters[i].detach().copy_(whole.parameters[i]);
    }
    resumed.optimizer->load(saved);
    EXPECT_EQ(resumed.optimizer->lr(), 0.03);
    whole.train(4, 9);
    resumed.train(4, 9);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(torch::equal(whole.parameters[i], resumed.parameters[i]));
    }
  }
}

TEST(OptimizerState, HasPythonsNames) {
  Training adamw("adamw");
  ASSERT_EQ(adamw.optimizer->state().parameters.size(), 3u);
  EXPECT_TRUE(adamw.optimizer->state().parameters[0].empty());
  adamw.train(0, 2);
  const OptimizerState state = adamw.optimizer->state();
  EXPECT_EQ(state.parameters[2].at("step").item<float>(), 2);
  EXPECT_EQ(state.parameters[2].at("exp_avg").numel(), 7);
  EXPECT_EQ(state.parameters[2].at("exp_avg_sq").numel(), 7);
  const std::map<std::string, double> expected = {{"lr", 0.05},
                                                  {"beta1", 0.9},
                                                  {"beta2", 0.999},
                                                  {"eps", 1e-8},
                                                  {"weight_decay", 0.02}};
  EXPECT_EQ(state.groups[1], expected);
  EXPECT_EQ(adamw.optimizer->kind(), "adamw");

  Training sgd("sgd");
  sgd.train(0, 1);
  EXPECT_EQ(sgd.optimizer->state().parameters[0].at("momentum_buffer").numel(),
            3);
  EXPECT_EQ(sgd.optimizer->state().groups[0].at("momentum"), 0.9);
}

TEST(OptimizerState, AnEmptyStateLoadsAsAFreshOptimizer) {
  Training fresh("sgd");
  Training used("sgd");
  used.train(0, 3);
  used.optimizer->load(fresh.optimizer->state());
  EXPECT_TRUE(used.optimizer->state().parameters[0].empty());
}

void expect_refused(const OptimizerState& state, const std::string& part) {
  Training training("adamw");
  training.train(0, 1);
  const auto before = copy_of(training.optimizer->state());
  try {
    training.optimizer->load(state);
    ADD_FAILURE() << "loaded";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(
      torch::equal(before.parameters[0].at("exp_avg"),
                   training.optimizer->state().parameters[0].at("exp_avg")));
}

TEST(OptimizerState, OfAnotherModelOrKindIsRefused) {
  Training training("adamw");
  training.train(0, 5);
  auto state = copy_of(training.optimizer->state());
  state.parameters.pop_back();
  expect_refused(state, "2 parameters in 2 groups, this one 3 in 2");

  state = copy_of(training.optimizer->state());
  state.parameters[2]["exp_avg_sq"] = torch::zeros({8});
  expect_refused(state, "exp_avg_sq of parameter 2 has shape [8]");

  state = copy_of(training.optimizer->state());
  state.parameters[1].erase("step");
  expect_refused(state, "parameter 1 holds exp_avg, exp_avg_sq");

  Training sgd("sgd");
  sgd.train(0, 1);
  expect_refused(sgd.optimizer->state(), "momentum_buffer");
}

}  // namespace
}  // namespace lockstep

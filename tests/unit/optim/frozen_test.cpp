#include "lockstep/optim/frozen.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep {
namespace {

struct Encoder : torch::nn::Module {
  torch::nn::Linear linear{2, 2};
  torch::nn::Dropout dropout{};
  Encoder() {
    register_module("linear", linear);
    register_module("dropout", dropout);
  }
};

struct Net : torch::nn::Module {
  std::shared_ptr<Encoder> encoder = std::make_shared<Encoder>();
  torch::nn::BatchNorm1d norm{2};
  torch::nn::Dropout dropout{};
  torch::nn::Linear head{2, 2};
  Net() {
    register_module("encoder", encoder);
    register_module("norm", norm);
    register_module("dropout", dropout);
    register_module("head", head);
  }
};

TEST(Frozen, FreezeStopsGradientsAndTraining) {
  Net net;
  optim::freeze(*net.encoder);
  for (const auto& p : net.encoder->parameters()) {
    EXPECT_FALSE(p.requires_grad());
  }
  EXPECT_FALSE(net.encoder->dropout->is_training());
  EXPECT_TRUE(net.head->weight.requires_grad());
}

TEST(Frozen, TrainModeLeavesFrozenModulesInEvalMode) {
  Net net;
  optim::freeze(*net.encoder);
  optim::freeze(*net.norm);
  net.train();  // What goes wrong without.
  EXPECT_TRUE(net.norm->is_training());
  optim::train_except_frozen(net);
  EXPECT_FALSE(net.encoder->is_training());
  EXPECT_FALSE(net.encoder->dropout->is_training());
  EXPECT_FALSE(net.norm->is_training());
  EXPECT_TRUE(net.is_training());
  EXPECT_TRUE(net.dropout->is_training());
  EXPECT_TRUE(net.head->is_training());
}

TEST(Frozen, AModuleFrozenInPartTrains) {
  Net net;
  net.eval();
  net.head->bias.requires_grad_(false);
  optim::train_except_frozen(net);
  EXPECT_TRUE(net.head->is_training());
  EXPECT_TRUE(net.encoder->is_training());
}

}  // namespace
}  // namespace lockstep

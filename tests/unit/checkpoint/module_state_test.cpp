#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "support/tree_equal.h"

namespace lockstep {
namespace {

struct Net : torch::nn::Module {
  Net() {
    register_module("linear", linear);
    register_module("norm", norm);
  }
  torch::nn::Linear linear{3, 2};
  torch::nn::BatchNorm1d norm{2};
};

Tree with_prefix(const Tree& state, const std::string& prefix) {
  Tree wrapped = Tree::dict();
  for (const auto& entry : *state.get_if<Tree::Dict>()) {
    wrapped[prefix + *entry.key.get_if<std::string>()] = entry.value;
  }
  return wrapped;
}

TEST(ModuleState, HoldsParametersAndBuffersByName) {
  const Net net;
  const Tree state = module_state(net);
  for (const char* name :
       {"linear.weight", "linear.bias", "norm.weight", "norm.bias",
        "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}) {
    EXPECT_FALSE(state.at(name).as_tensor().requires_grad()) << name;
  }
  EXPECT_EQ(state.get_if<Tree::Dict>()->size(), 7u);
}

TEST(ModuleState, IsLoadedWithAndWithoutPrefix) {
  const Net first;
  for (const char* prefix : {"", "module.", "_orig_mod.", "module._orig_mod.",
                             "_orig_mod.module."}) {
    Net second;
    const auto report =
        load_module_state(second, with_prefix(module_state(first), prefix));
    EXPECT_TRUE(report.is_complete()) << prefix;
    testing::expect_equal(module_state(second), module_state(first));
    EXPECT_TRUE(second.linear->weight.requires_grad());
  }
}

TEST(ModuleState, APrefixIsThatOfAllTensors) {
  Tree state = with_prefix(module_state(Net()), "module.");
  state["epoch"] = 3;
  Net net;
  EXPECT_EQ(load_module_state(net, state, Strictness::kWhatFits).unexpected,
            std::vector<std::string>{"epoch"});
  state["other"] = torch::zeros({1});
  EXPECT_EQ(load_module_state(net, state, Strictness::kWhatFits).num_loaded, 0);
}

TEST(ModuleState, APartCalledModuleKeepsItsName) {
  torch::nn::Module outer;
  outer.register_module("module", std::make_shared<Net>());
  const auto report = load_module_state(outer, module_state(outer));
  EXPECT_EQ(report.num_loaded, 7);
}

TEST(ModuleState, PrefixesOfWrappersAreKnown) {
  EXPECT_EQ(wrapper_prefix({}), "");
  EXPECT_EQ(wrapper_prefix({"a", "b"}), "");
  EXPECT_EQ(wrapper_prefix({"module.a", "b"}), "");
  EXPECT_EQ(wrapper_prefix({"module.a", "module.b.module.c"}), "module.");
  EXPECT_EQ(wrapper_prefix({"module._orig_mod.a", "module.b"}), "module.");
  EXPECT_EQ(wrapper_prefix({"_orig_mod.module.a", "_orig_mod.module.b"}),
            "_orig_mod.module.");
  EXPECT_EQ(wrapper_prefix({"module."}), "") << "a name must be left";
}

TEST(ModuleState, ConvertsToTheTypeOfTheModule) {
  Tree state = module_state(Net());
  state["linear.weight"] = torch::ones({2, 3}, at::kDouble);
  Net net;
  load_module_state(net, state);
  EXPECT_EQ(net.linear->weight.scalar_type(), at::kFloat);
  EXPECT_EQ(net.linear->weight.sum().item<float>(), 6);
}

TEST(ModuleState, StrictLoadingNamesWhatDoesNotFitAndChangesNothing) {
  Tree state;
  state["linear.weight"] = torch::zeros({2, 3});
  state["linear.bias"] = torch::zeros({5});
  for (int i = 0; i < 20; ++i) {
    state["extra" + std::to_string(i)] = torch::zeros({1});
  }
  Net net;
  const at::Tensor before = net.linear->weight.detach().clone();
  std::string message;
  try {
    load_module_state(net, state);
  } catch (const ConfigError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("linear.bias: file [5], module [2]"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("norm.running_mean"), std::string::npos) << message;
  EXPECT_NE(message.find("extra0"), std::string::npos) << message;
  EXPECT_NE(message.find("and 16 more"), std::string::npos) << message;
  EXPECT_TRUE(torch::equal(net.linear->weight, before));
}

TEST(ModuleState, WhatFitsIsLoadedAndTheRestReported) {
  Tree state;
  state["linear.weight"] = torch::zeros({2, 3});
  state["linear.bias"] = "text";
  state["extra"] = torch::zeros({1});
  state["args"] = Opaque{"argparse.Namespace"};
  Net net;
  const auto report = load_module_state(net, state, Strictness::kWhatFits);
  EXPECT_EQ(report.missing.size(), 5u);
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"extra"});
  EXPECT_EQ(report.mismatched,
            std::vector<std::string>{"linear.bias: no tensor"});
  EXPECT_EQ(net.linear->weight.abs().sum().item<float>(), 0);
}

TEST(ModuleState, WhatIsNoDictIsAnErrorWithItsPath) {
  Net net;
  Tree tree;
  tree["model"] = 3;
  EXPECT_THROW(load_module_state(net, tree.at("model")), FormatError);
}

}  // namespace
}  // namespace lockstep

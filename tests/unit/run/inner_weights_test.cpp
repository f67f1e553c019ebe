#include "lockstep/run/inner_weights.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "unit/engine/flags.h"

namespace lockstep {
namespace {

using testing::config_error;
using testing::contains;
using Names = std::vector<std::string>;

const Names kModel = {"first.weight", "last.weight", "last.bias"};

Tree dict_of(const Names& names) {
  Tree tree = Tree::dict();
  for (const std::string& name : names) tree[name] = torch::ones({2});
  return tree;
}

Names prefixed(const std::string& prefix) {
  Names names;
  for (const std::string& name : kModel) names.push_back(prefix + name);
  return names;
}

Names operator+(Names left, const Names& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Names keys(const Tree& tree) {
  Names names;
  for (const auto& entry : *tree.get_if<Tree::Dict>()) {
    names.push_back(*entry.key.get_if<std::string>());
  }
  return names;
}

run::InnerWeights found_in(const Names& file) {
  return run::find_inner_weights(dict_of(file), kModel, "a.ckpt");
}

TEST(InnerWeights, AreThoseBelowTheAttributeThatHoldsTheModel) {
  for (const char* prefix : {"model.", "net.", "model._orig_mod.", "a.b."}) {
    const auto found = found_in(Names{"loss.weight"} + prefixed(prefix));
    EXPECT_EQ(keys(found.weights), kModel);
    EXPECT_EQ(found.prefix, prefix);
    EXPECT_EQ(found.num_left_out, 1);
  }
}

TEST(InnerWeights, AreTheFilesWhenNamesFitAsTheyAre) {
  for (const Names& file :
       {kModel + prefixed("model."), prefixed("module."), Names{"other"},
        Names{"model.last.bias", "x.weight"}}) {
    const auto found = found_in(file);
    EXPECT_EQ(keys(found.weights), file);
    EXPECT_EQ(found.prefix, "");
    EXPECT_EQ(found.num_left_out, 0);
  }
}

TEST(InnerWeights, LackWhatTheFileLacks) {
  const auto found = found_in({"net.last.weight", "net.last.bias"});
  EXPECT_EQ(keys(found.weights), (Names{"last.weight", "last.bias"}));
}

TEST(InnerWeights, OfNamesWithEndlessDotsAreNotLookedFor) {
  const std::string dots(1'000'000, '.');
  EXPECT_EQ(found_in({dots + "last.bias", dots + "last.weight"}).prefix, "");
}

TEST(InnerWeights, OfModelComeFirstAmongEquals) {
  EXPECT_EQ(found_in(prefixed("ema.") + prefixed("model.")).prefix, "model.");
  const std::string error = config_error(
      [] { found_in(prefixed("student.") + prefixed("teacher.")); });
  EXPECT_TRUE(contains(error, "several times, under student., teacher.; "))
      << error;
  EXPECT_TRUE(contains(error, "lockstep export a.ckpt weights.pt --key KEY"))
      << error;
}

}  // namespace
}  // namespace lockstep

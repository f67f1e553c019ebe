#include "lockstep/run/checkpoint_sections.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/error.h"
#include "unit/engine/flags.h"

namespace lockstep {
namespace {

using testing::config_error;
using testing::contains;

Tree tensors(const std::vector<std::string>& names) {
  Tree tree = Tree::dict();
  for (const std::string& name : names) tree[name] = torch::ones({2});
  return tree;
}

std::vector<std::string> names_in(const Tree& weights) {
  std::vector<std::string> names;
  for (const auto& entry : *weights.get_if<Tree::Dict>()) {
    names.push_back(*entry.key.get_if<std::string>());
  }
  return names;
}

std::vector<std::string> found_in(const Tree& file,
                                  const CheckpointLayout& layout = {}) {
  return names_in(run::find_weights(file, layout, "a.pt"));
}

TEST(CheckpointLayout, WeightsAreFoundUnderTheRecipesKeysFirst) {
  Tree file = Tree::dict();
  file["state_dict"] = tensors({"other"});
  file["encoder"] = tensors({"module._orig_mod.w"});
  file["decoder"] = tensors({"w"});
  const CheckpointLayout layout{
      .model = {{.key = "encoder", .prefix = "encoder."},
                {.key = "decoder", .prefix = "decoder."}}};
  EXPECT_EQ(found_in(file, layout),
            (std::vector<std::string>{"encoder.w", "decoder.w"}));
  EXPECT_EQ(found_in(file), std::vector<std::string>{"other"});
}

TEST(CheckpointLayout, ADictOfTensorsIsWeightsItself) {
  Tree file = tensors({"a", "b"});
  file["epoch"] = 3;
  file["model"] = "a name, not weights";
  EXPECT_EQ(found_in(file), (std::vector<std::string>{"a", "b"}));
}

TEST(CheckpointLayout, AFileWithoutWeightsIsRefusedWithWhatItHolds) {
  Tree file = Tree::dict();
  file["epoch"] = 3;
  file["weights"] = tensors({"a"});
  try {
    found_in(file);
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_TRUE(contains(error.what(), "it holds epoch, weights."))
        << error.what();
  }
}

TEST(CheckpointLayout, AveragesAreFoundWithAndWithoutDots) {
  const CheckpointLayout layout{.averages = {"ema"}};
  const std::vector<std::string> names = {"first.weight", "last.weight"};
  for (const auto& saved :
       {std::vector<std::string>{"first.weight", "last.weight", "decay"},
        std::vector<std::string>{"firstweight", "lastweight", "num_updates"}}) {
    Tree file = Tree::dict();
    file["ema"] = tensors(saved);
    EXPECT_EQ(names_in(run::find_average(file, layout, 0, names)), names);
  }
}

TEST(CheckpointLayout, AnAverageOfAnotherModelIsRefused) {
  const CheckpointLayout layout{.averages = {"ema"}};
  Tree file = Tree::dict();
  file["ema"] = tensors({"firstweight"});
  const std::string missing = config_error([&] {
    run::find_average(file, layout, 0, {"first.weight", "last.weight"});
  });
  EXPECT_TRUE(contains(missing,
                       "'ema' in the checkpoint has no average of "
                       "last.weight"))
      << missing;
  const std::string none = config_error(
      [&] { run::find_average(file, layout, 1, {"first.weight"}); });
  EXPECT_TRUE(contains(none, "holds 0 moving averages")) << none;
}

}  // namespace
}  // namespace lockstep

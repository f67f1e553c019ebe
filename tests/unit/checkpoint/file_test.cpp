#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/files.h"
#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "support/cpu_time.h"
#include "support/shortened_file.h"
#include "support/temp_dir.h"
#include "support/tree_equal.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

Tree sample_tree() {
  const at::Tensor tied = torch::randn({4});
  Tree tree;
  tree["epoch"] = 3;
  tree["model"]["weight"] = torch::randn({2, 3});
  tree["model"]["half"] = torch::randn({5}).to(at::kBFloat16);
  tree["model"]["transposed"] = torch::randn({2, 3}).t();
  tree["model"]["scalar"] = torch::tensor(1.5);
  tree["tied"] = Tree::list({tied, tied});
  tree["betas"] = Tree::tuple({0.9, 0.999});
  return tree;
}

TEST(CheckpointFile, TreesComeBack) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  const Tree tree = sample_tree();
  save_checkpoint(path, tree);
  const Tree loaded = load_checkpoint(path);
  testing::expect_equal(loaded, tree);
  loaded.at("tied").at(0).as_tensor().fill_(7);
  EXPECT_EQ(loaded.at("tied").at(1).as_tensor()[3].item<float>(), 7);
}

TEST(CheckpointFile, LoadedTensorsDoNotDependOnTheFile) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  const Tree tree = sample_tree();
  save_checkpoint(path, tree);
  const Tree loaded = load_checkpoint(path);
  fs::resize_file(path, 0);
  testing::expect_equal(loaded, tree);
}

TEST(CheckpointFile, AFileThatIsCutOffMeanwhileIsAnError) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  Tree tree;
  tree["a"] = torch::ones({3'000'000});
  save_checkpoint(path, tree);
  testing::read_while_shortened(folder, "a.pt", 50,
                                [&] { load_checkpoint(path); });
}

TEST(CheckpointFile, ManyTensorsTakeTimeInProportion) {
  const testing::TempDir folder;
  const auto seconds = [&](int count) {
    const fs::path path = folder.path() / "a.safetensors";
    Tree::Dict tensors;
    const at::Tensor tensor = torch::ones({1});
    for (int i = 0; i < count; ++i) {
      tensors.push_back({std::to_string(i), tensor});
    }
    save_safetensors(path, std::move(tensors));
    return testing::cpu_seconds([&] { load_checkpoint(path); });
  };
  EXPECT_LT(testing::growth_of_time(seconds, 80'000), testing::kLinearGrowth);
}

TEST(CheckpointFile, TrainedParametersAreSavedWithoutAutograd) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  Tree tree;
  tree["x"] = torch::ones({2}, torch::requires_grad());
  save_checkpoint(path, tree);
  EXPECT_FALSE(load_checkpoint(path).at("x").as_tensor().requires_grad());
}

TEST(CheckpointFile, OnlyTheUsedPartOfAStorageIsWritten) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  const at::Tensor large = torch::randn({1'000'000});
  Tree tree;
  tree["part"] = large.slice(0, 10, 20);
  save_checkpoint(path, tree);
  EXPECT_LT(fs::file_size(path), 10'000u);
  EXPECT_TRUE(torch::equal(load_checkpoint(path).at("part").as_tensor(),
                           large.slice(0, 10, 20)));
}

TEST(CheckpointFile, TheKindIsFoundByContent) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "weights.pt";
  Tree tensors;
  tensors["layer.weight"] = torch::randn({2, 3});
  save_safetensors(path, tensors);
  testing::expect_equal(load_checkpoint(path), tensors);
  save_checkpoint(folder.path() / "a.safetensors", tensors);
  testing::expect_equal(load_checkpoint(folder.path() / "a.safetensors"),
                        tensors);
}

TEST(CheckpointFile, WhatCannotBeSavedIsRefusedBeforeTheOldFileGoes) {
  const testing::TempDir folder;
  const fs::path path = folder.write("a.pt", "old");
  Tree tree;
  tree["x"] = torch::ones({2, 2}).to_sparse();
  EXPECT_THROW(save_checkpoint(path, tree), ConfigError);
  tree["x"] = at::Tensor();
  EXPECT_THROW(save_checkpoint(path, tree), ConfigError);
  tree["x"] = Opaque{"argparse.Namespace"};
  EXPECT_THROW(save_checkpoint(path, tree), FormatError);
  tree["x"] = 3;
  EXPECT_THROW(save_safetensors(path, tree), ConfigError);
  EXPECT_THROW(save_safetensors(path, Tree(3)), ConfigError);
  EXPECT_EQ(base::read_file(path), "old");
}

TEST(CheckpointFile, DamagedAndMissingFilesAreErrors) {
  const testing::TempDir folder;
  EXPECT_THROW(load_checkpoint(folder.write("a.pt", "")), FormatError);
  EXPECT_THROW(load_checkpoint(folder.write("b.pt", "hello, this is no")),
               FormatError);
  EXPECT_THROW(load_checkpoint(folder.path() / "none.pt"), IoError);
}

}  // namespace
}  // namespace lockstep

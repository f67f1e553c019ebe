#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>

#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "support/temp_dir.h"
#include "support/tree_equal.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

TEST(BackgroundSaver, TensorsMayChangeAsSoonAsSaveReturns) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  Tree tree;
  const at::Tensor weight = torch::ones({1'000'000});
  tree["weight"] = weight;
  BackgroundSaver saver;
  saver.save(path, tree);
  weight.zero_();
  saver.wait();
  EXPECT_EQ(load_checkpoint(path).at("weight").as_tensor().min().item<float>(),
            1);
  EXPECT_EQ(saver.take_error(), std::nullopt);
}

// Its memory serves again, whatever is saved next.
TEST(BackgroundSaver, SavesOfOtherShapesFollowEachOther) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  const at::Tensor base = torch::arange(24, torch::kFloat);
  BackgroundSaver saver;
  for (const at::Tensor& tensor :
       {base, base + 1, base.view({4, 6}).t(), base.to(torch::kDouble),
        base.slice(0, 3, 7), torch::empty({0}), base + 2}) {
    Tree tree;
    tree["first"] = tensor;
    tree["tied"] = tensor;
    tree["other"] = tensor + 5;
    saver.save(path, tree);
    saver.wait();
    testing::expect_equal(load_checkpoint(path), tree);
  }
  EXPECT_EQ(saver.take_error(), std::nullopt);
}

TEST(BackgroundSaver, OneFileIsWrittenAtATime) {
  const testing::TempDir folder;
  std::atomic<int> num_saved = 0;
  BackgroundSaver saver({.on_saved = [&](const fs::path& path) {
    EXPECT_NO_THROW(load_checkpoint(path));
    ++num_saved;
  }});
  Tree tree;
  tree["weight"] = torch::ones({10'000});
  for (int i = 0; i < 5; ++i) {
    saver.save(folder.path() / (std::to_string(i) + ".pt"), tree);
    EXPECT_GE(num_saved, i);
  }
  saver.wait();
  EXPECT_EQ(num_saved, 5);
}

TEST(BackgroundSaver, ItsDestructorFinishesTheWrite) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  Tree tree;
  tree["weight"] = torch::ones({1'000'000});
  BackgroundSaver().save(path, tree);
  EXPECT_NO_THROW(load_checkpoint(path));
}

TEST(BackgroundSaver, SaysBeforeItWrites) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "a.pt";
  std::vector<bool> existed;
  BackgroundSaver saver(
      {.before_save = [&] { existed.push_back(fs::exists(path)); }});
  saver.save(path, Tree::dict());
  saver.save(path, Tree::dict());
  saver.wait();
  EXPECT_EQ(existed, (std::vector<bool>{false, true}));
}

TEST(BackgroundSaver, ErrorsAreKeptAndGivenOnce) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "missing" / "a.pt";
  std::string told;
  BackgroundSaver saver(
      {.on_error = [&](const fs::path&, const std::string& error) {
        told = error;
      }});
  saver.save(path, Tree::dict());
  saver.wait();
  const auto error = saver.take_error();
  ASSERT_TRUE(error.has_value());
  EXPECT_NE(error->find(path.string()), std::string::npos) << *error;
  EXPECT_EQ(told, *error);
  EXPECT_EQ(saver.take_error(), std::nullopt);
  saver.save(folder.path() / "b.pt", Tree::dict());
  saver.wait();
  EXPECT_EQ(saver.take_error(), std::nullopt);
}

TEST(BackgroundSaver, TensorsThatCannotBeSavedAreAnErrorOfSave) {
  Tree tree;
  tree["x"] = at::Tensor();
  BackgroundSaver saver;
  EXPECT_THROW(saver.save("unused.pt", tree), ConfigError);
}

}  // namespace
}  // namespace lockstep

#include "lockstep/checkpoint/folder.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

#include "lockstep/base/files.h"
#include "lockstep/checkpoint.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class CheckpointFolder : public ::testing::Test {
 protected:
  void save(const std::string& name, int64_t step) const {
    Tree tree;
    tree["progress"]["step"] = step;
    tree["weight"] = torch::full({8}, 3.0F);
    save_checkpoint(folder_.path() / name, tree);
  }

  // Changes a byte of the tensor, so that only a full check finds it.
  void damage(const std::string& name) const {
    std::string bytes = base::read_file(folder_.path() / name);
    const float three = 3;
    bytes[bytes.find(std::string(reinterpret_cast<const char*>(&three), 4))] ^=
        1;
    folder_.write(name, bytes);
  }

  checkpoint::CheckpointQuery query() const {
    return {.folder = folder_.path(),
            .patterns = {"*.pt"},
            .step_key = "progress.step"};
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  testing::TempDir folder_;
};

TEST_F(CheckpointFolder, IsListedByStepNewestFirst) {
  save("b.pt", 9);
  save("c.pt", 100);
  save("a.pt", 20);
  save("other.pth", 500);
  folder_.write("junk.pt", "junk");
  Tree without_step = Tree::dict();
  save_checkpoint(folder_.path() / "stepless.pt", without_step);
  std::vector<std::string> skipped;
  const auto files = checkpoint::list_checkpoints(
      query(), [&](const fs::path& path, const std::string& reason) {
        skipped.push_back(path.filename());
        EXPECT_FALSE(reason.empty());
      });
  std::vector<int64_t> steps;
  for (const auto& file : files) steps.push_back(file.step);
  EXPECT_EQ(steps, (std::vector<int64_t>{100, 20, 9}));
  std::ranges::sort(skipped);
  EXPECT_EQ(skipped, (std::vector<std::string>{"junk.pt", "stepless.pt"}));
}

TEST_F(CheckpointFolder, TheNewestValidOneIsFoundBehindDamagedOnes) {
  save("a.pt", 1);
  save("b.pt", 2);
  save("c.pt", 3);
  damage("c.pt");
  std::vector<std::string> skipped;
  const auto found = checkpoint::load_latest(
      query(), [&](const fs::path& path, const std::string& reason) {
        skipped.push_back(path.filename().string() + " " + reason);
      });
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->file.path.filename(), "b.pt");
  EXPECT_EQ(found->tree.at("progress").at("step").as_int(), 2);
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_TRUE(skipped[0].starts_with("c.pt") &&
              skipped[0].find("CRC") != std::string::npos)
      << skipped[0];
}

TEST_F(CheckpointFolder, NothingIsFoundWhereNothingIs) {
  EXPECT_FALSE(checkpoint::load_latest(query()).has_value());
  auto nowhere = query();
  nowhere.folder /= "none";
  EXPECT_FALSE(checkpoint::load_latest(nowhere).has_value());
}

TEST_F(CheckpointFolder, OldOnesGoAndNamedOnesStay) {
  for (int i = 1; i <= 5; ++i) save(std::to_string(i) + ".pt", i);
  folder_.write("notes.txt", "mine");
  EXPECT_EQ(checkpoint::remove_old(query(), {.keep_last = 2, .keep = {"1.pt"}})
                .size(),
            2u);
  EXPECT_EQ(names(),
            (std::vector<std::string>{"1.pt", "4.pt", "5.pt", "notes.txt"}));
}

TEST_F(CheckpointFolder, TheLastValidOneIsNeverRemoved) {
  for (int i = 1; i <= 4; ++i) save(std::to_string(i) + ".pt", i);
  damage("3.pt");
  damage("4.pt");
  checkpoint::remove_old(query(), {.keep_last = 1});
  EXPECT_EQ(names(), (std::vector<std::string>{"2.pt", "4.pt"}));
}

TEST_F(CheckpointFolder, TemporaryFilesAreNoCheckpoints) {
  save("1.pt", 1);
  folder_.write("2.pt.partial.abcdef", "half");
  EXPECT_EQ(checkpoint::list_checkpoints(query()).size(), 1u);
  EXPECT_EQ(base::remove_leftovers(folder_.path()).size(), 1u);
  EXPECT_EQ(names(), std::vector<std::string>{"1.pt"});
}

}  // namespace
}  // namespace lockstep

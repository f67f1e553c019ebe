#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>

#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "lockstep/run/checkpoints.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Bytes that this process has read so far.
int64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string name;
  int64_t value = 0;
  while (file >> name >> value) {
    if (name == "rchar:") return value;
  }
  ADD_FAILURE() << "/proc/self/io has no rchar";
  return 0;
}

class FindCheckpoint : public ::testing::Test {
 protected:
  fs::path save(int64_t step) const {
    Tree tree = Tree::dict();
    tree["weight"] = torch::full({1 << 20}, static_cast<float>(step));
    tree["lockstep"]["recipe"] = "tiny";
    tree["lockstep"]["state"]["step"] = step;
    const fs::path path =
        folder_.path() / ("checkpoint_step_" + std::to_string(step) + ".pt");
    save_checkpoint(path, tree);
    return path;
  }

  std::optional<Tree> find(const std::string& resume) {
    return run::find_checkpoint(
        resume, {.folder = folder_.path(), .recipe = "tiny"}, world_, console_);
  }

  testing::TempDir folder_;
  World world_ = World::from_environment({.device = DeviceChoice::kCpu}, {});
  std::string printed_;
  track::Console console_{
      {},
      {.out = [this](std::string_view text) { printed_ += text; },
       .err = [this](std::string_view text) { printed_ += text; }}};
};

TEST_F(FindCheckpoint, ReadsTheCheckpointOnce) {
  const fs::path newest = save(20);
  save(10);
  const auto size = static_cast<int64_t>(fs::file_size(newest));
  for (const std::string& resume : {std::string("latest"), newest.string()}) {
    const int64_t before = bytes_read();
    const auto tree = find(resume);
    const int64_t read = bytes_read() - before;
    ASSERT_TRUE(tree.has_value());
    EXPECT_EQ(tree->at("lockstep").at("state").at("step").as_int(), 20);
    EXPECT_GE(read, size) << "the test does not see reads";
    EXPECT_LT(read, size + size / 4) << resume;
  }
}

TEST_F(FindCheckpoint, TakesAnOlderOneWhenTheNewestIsDamaged) {
  save(10);
  const fs::path newest = save(20);
  std::fstream file(newest, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<int64_t>(fs::file_size(newest)) / 2);
  file.put('x');
  file.close();
  const auto tree = find("latest");
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->at("lockstep").at("state").at("step").as_int(), 10);
  EXPECT_NE(printed_.find("checkpoint_step_20.pt is left out"),
            std::string::npos)
      << printed_;
}

TEST_F(FindCheckpoint, FindsNothingInAnEmptyFolder) {
  EXPECT_FALSE(find("latest").has_value());
  EXPECT_THROW(find(folder_.path() / "none.pt"), ConfigError);
  EXPECT_THROW(find(folder_.path()), ConfigError);
}

}  // namespace
}  // namespace lockstep

// lockstep-prepare against files that h5py and pyarrow write; Python compares
// the episodes with what was put in.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <map>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::Process;
using testing::ProcessResult;
using testing::TempDir;
using Words = std::vector<std::string>;

class PrepareInterop : public ::testing::Test {
 protected:
  void python(const Words& words) {
    Words command = {TORCH_PYTHON,
                     std::string(PYTHON_SCRIPTS) + "/prepare_files.py"};
    command.insert(command.end(), words.begin(), words.end());
    const ProcessResult result =
        testing::run(command, {.timeout_seconds = 120});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    printed_ = std::string(trim(result.out));
  }
  void make(const Words& kind) {
    Words words = {"make", kind[0], in_};
    words.insert(words.end(), kind.begin() + 1, kind.end());
    python(words);
  }
  // How many episodes are there, all of them as put in.
  std::string num_right(const std::string& kind,
                        const std::string& variant = "") {
    python({"check", kind, in_, out_, variant});
    return printed_;
  }

  Words command(const Words& more = {}) const {
    Words words = {PREPARE_PROGRAM, "atlas", "--input", in_, "--output", out_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  ProcessResult prepare(const Words& more = {}) const {
    return testing::run(command(more), {.timeout_seconds = 60});
  }
  // Name and reason of each line of rejected.txt.
  std::map<std::string, std::string> rejected() const {
    std::map<std::string, std::string> reasons;
    for (const std::string& line :
         split(read_file(fs::path(out_) / "rejected.txt"), '\n')) {
      const size_t tab = line.find('\t');
      if (tab == std::string::npos) continue;
      reasons[line.substr(0, tab)] = line.substr(tab + 1);
    }
    return reasons;
  }
  void expect_reason(const std::string& name, const std::string& part) const {
    const auto all = rejected();
    const auto found = all.find(name);
    ASSERT_NE(found, all.end()) << name;
    EXPECT_NE(found->second.find(part), std::string::npos) << found->second;
  }
  size_t num_hidden() const {
    size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(out_)) {
      count += entry.path().filename().string().starts_with('.') ? 1 : 0;
    }
    return count;
  }

  TempDir folder_;
  std::string in_ = folder_.path() / "in";
  std::string out_ = folder_.path() / "out";
  std::string printed_;
};

TEST_F(PrepareInterop, LiberoPixelForPixel) {
  make({"libero"});
  const ProcessResult result = prepare({"--workers", "4"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("--flip turns them"), std::string::npos);
  EXPECT_EQ(num_right("libero"), "5");
  EXPECT_EQ(num_hidden(), 0U);
}

TEST_F(PrepareInterop, LiberoTurnedAndWithoutWrist) {
  make({"libero"});
  EXPECT_EQ(prepare({"--flip"}).exit_code, 0);
  EXPECT_EQ(num_right("libero", "flip"), "5");
  EXPECT_EQ(prepare({"--overwrite", "--cameras", "agentview"}).exit_code, 0);
  EXPECT_EQ(num_right("libero", "one"), "5");
}

TEST_F(PrepareInterop, DamagedLiberoFilesAreListed) {
  make({"libero-bad"});
  const ProcessResult result = prepare();
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_NE(result.out.find("10 could not be read"), std::string::npos)
      << result.out;
  expect_reason("episode_mixed-demo_1", "no group 'data/demo_1/obs'");
  expect_reason("episode_mixed-demo_2", "no 'data/demo_2/actions'");
  expect_reason("episode_mixed-demo_3", "frames x 7 numbers");
  expect_reason("episode_mixed-demo_4", "action 1: z is nan");
  expect_reason("episode_mixed-demo_5", "agentview_rgb' holds no pictures");
  expect_reason("episode_mixed-demo_6", "3 workspace pictures, but 2");
  expect_reason("episode_mixed-demo_7", "2 actions for 3 frames");
  expect_reason(in_ + "/cut_demo.hdf5", "is it whole?");
  expect_reason(in_ + "/empty_demo.hdf5", "is it whole?");
  expect_reason(in_ + "/nothing_demo.hdf5", "there is no group 'data'");
  // The cure is seen.
  fs::remove(fs::path(in_) / "mixed_demo.hdf5");
  EXPECT_EQ(prepare().exit_code, 4);
}

TEST_F(PrepareInterop, LerobotByteForByte) {
  make({"lerobot", "7"});
  const ProcessResult result = prepare({"--val_fraction", "0.3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(num_right("lerobot"), "7");
  EXPECT_FALSE(fs::exists(fs::path(out_) / "rejected.txt"));
}

TEST_F(PrepareInterop, LerobotColumnsOfOtherNames) {
  make({"lerobot-names"});
  EXPECT_EQ(prepare().exit_code, 0);
  EXPECT_EQ(num_right("lerobot-names"), "3");
  EXPECT_EQ(prepare({"--overwrite", "--cameras", "top"}).exit_code, 0);
  EXPECT_EQ(num_right("lerobot-names", "one"), "3");
}

TEST_F(PrepareInterop, DamagedLerobotEpisodesAreListed) {
  make({"lerobot-bad"});
  const ProcessResult result = prepare();
  EXPECT_EQ(result.exit_code, 4) << result.err;
  expect_reason("episode_000001", "has no column 'wrist_image', but image");
  expect_reason("episode_000002", "is it whole?");
  expect_reason("episode_000003", "action 0: x is nan");
  expect_reason("episode_000004", "without the bytes of a picture");
  expect_reason("episode_000005", "does not hold 7 numbers");
  expect_reason("episode_000006", "its task changes");
  expect_reason("episode_000007", "neither PNG nor JPEG");
  expect_reason("episode_000008", "has 2 rows, 43 are listed");
  expect_reason("episode_000009", "has no file");
  EXPECT_EQ(rejected().size(), 9U);
  EXPECT_EQ(
      read_file(fs::path(out_) / "train/episode_000000/language_task.txt"),
      "listed\n");
}

TEST_F(PrepareInterop, ParquetActionsInAnotherFolderAndInPlace) {
  make({"parquet"});
  EXPECT_EQ(prepare().exit_code, 0);
  EXPECT_EQ(num_right("parquet"), "3");
  EXPECT_TRUE(fs::exists(fs::path(out_) / "val/episode_002"));
  out_ = in_ + "/.";
  const ProcessResult result = prepare();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(num_right("parquet"), "3");
  EXPECT_NE(prepare().out.find("Made 0 episodes"), std::string::npos);
  fs::resize_file(fs::path(in_) / "train/episode_000/actions.parquet", 50);
  fs::remove(fs::path(in_) / "train/episode_000/actions.csv");
  EXPECT_EQ(prepare().exit_code, 4);
  expect_reason("train/episode_000", "is it whole?");
}

TEST_F(PrepareInterop, KilledGoesOnWhereItWas) {
  make({"lerobot", "60"});
  const auto num_made = [&] {
    size_t count = 0;
    std::error_code problem;
    for (const char* split : {"train", "val"}) {
      for (fs::directory_iterator entry(fs::path(out_) / split, problem), end;
           !problem && entry != end; entry.increment(problem)) {
        count += entry->path().filename().string().starts_with('.') ? 0 : 1;
      }
    }
    return count;
  };
  size_t most_made = 0;
  for (const size_t wanted : {1, 20, 40}) {
    if (most_made >= wanted) continue;
    Process process(command({"--workers", "2"}));
    ASSERT_TRUE(testing::wait_for([&] { return num_made() >= wanted; }, 30));
    process.send(SIGKILL);
    process.wait();
    most_made = num_made();
    // What is there is whole.
    EXPECT_EQ(num_right("lerobot"), std::to_string(most_made));
  }
  const ProcessResult result = prepare({"--workers", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find(std::to_string(most_made) + " were there already"),
            std::string::npos)
      << result.out;
  EXPECT_EQ(num_right("lerobot"), "60");
  EXPECT_EQ(num_hidden(), 0U);
}

TEST_F(PrepareInterop, FullDiskEndsItWithAMessage) {
  make({"libero"});
  // No file grows beyond 512 bytes.
  Words words = {"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"",
                 "sh"};
  const Words inner = command();
  words.insert(words.end(), inner.begin(), inner.end());
  const ProcessResult result = testing::run(words);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("cannot write"), std::string::npos) << result.err;
  EXPECT_EQ(num_hidden(), 0U);
  EXPECT_EQ(prepare().exit_code, 0);
  EXPECT_EQ(num_right("libero"), "5");
}

}  // namespace
}  // namespace lockstep

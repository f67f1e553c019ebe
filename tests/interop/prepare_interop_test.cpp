// lockstep-prepare against files that h5py and pyarrow write; Python compares
// the episodes with what was put in.
#include <sys/stat.h>

#include <csignal>

#include "interop/prepare_fixture.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::Process;
using testing::ProcessResult;

class PrepareInterop : public testing::PrepareFixture {
 protected:
  void make(const Words& kind) {
    Words words = {"make", kind[0], in_};
    words.insert(words.end(), kind.begin() + 1, kind.end());
    python("prepare_files.py", words);
  }
  // How many episodes are there, all of them as put in.
  std::string num_right(const std::string& kind,
                        const std::string& variant = "") {
    python("prepare_files.py", {"check", kind, in_, out_, variant});
    return printed_;
  }
};

TEST_F(PrepareInterop, LiberoPixelForPixel) {
  make({"libero"});
  const ProcessResult result = prepare({"--workers", "4"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("--flip turns them"), std::string::npos);
  EXPECT_EQ(num_right("libero"), "6");
  EXPECT_EQ(num_hidden(), 0U);
}

TEST_F(PrepareInterop, LiberoTurnedAndWithoutWrist) {
  make({"libero"});
  EXPECT_EQ(prepare({"--flip"}).exit_code, 0);
  EXPECT_EQ(num_right("libero", "flip"), "6");
  EXPECT_EQ(prepare({"--overwrite", "--cameras", "agentview"}).exit_code, 0);
  EXPECT_EQ(num_right("libero", "one"), "6");
}

TEST_F(PrepareInterop, DamagedLiberoFilesAreListed) {
  make({"libero-bad"});
  const ProcessResult result = prepare();
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_NE(result.out.find("11 could not be read"), std::string::npos)
      << result.out;
  expect_reason("episode_mixed-demo_1", "no group 'data/demo_1/obs'");
  expect_reason("episode_mixed-demo_2", "no 'data/demo_2/actions'");
  expect_reason("episode_mixed-demo_3", "frames x 7 numbers");
  expect_reason("episode_mixed-demo_4", "action 1: z is nan");
  expect_reason("episode_mixed-demo_5", "agentview_rgb' holds no images");
  expect_reason("episode_mixed-demo_6", "3 workspace images, but 2");
  expect_reason("episode_mixed-demo_7", "2 actions for 3 frames");
  expect_reason("episode_mixed-demo_8",
                "compressed by filter 32015, which is not known. Store it with "
                "gzip or lzf");
  expect_reason(in_ + "/cut_demo.hdf5", "is it whole?");
  expect_reason(in_ + "/empty_demo.hdf5", "is it whole?");
  expect_reason(in_ + "/nothing_demo.hdf5", "there is no group 'data'");
  // The cure is seen.
  fs::remove(fs::path(in_) / "mixed_demo.hdf5");
  EXPECT_EQ(prepare().exit_code, 4);
}

// HDF5 1.10 loops without end or reads beyond its memory on the first two. All
// other files are made.
TEST_F(PrepareInterop, FilesOnWhichHdf5CrashesOrHangsDoNotStopIt) {
  make({"libero"});
  python("prepare_files.py", {"make", "libero-heap", in_});
  ASSERT_EQ(mkfifo((in_ + "/silent_demo.hdf5").c_str(), 0600), 0);
  const ProcessResult result = prepare({"--timeout", "8"});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  expect_reason(in_ + "/silent_demo.hdf5",
                "made no progress for 8 s, and was stopped");
  expect_reason("episode_memory-demo_0", "takes more memory than 4096 MiB");
  EXPECT_NE(result.out.find("Left out: "), std::string::npos) << result.out;
  EXPECT_EQ(num_hidden(), 0U);
  // A library that notices the damage lets the file's name be the sentence.
  for (const std::string name : {"endless", "beyond"}) {
    const fs::path file = fs::path(in_) / (name + "_demo.hdf5");
    const std::string episode = "episode_" + name + "-demo_0";
    const bool is_rejected =
        rejected().contains(file.string()) || rejected().contains(episode);
    bool is_made = false;
    for (const char* split : {"train", "val"}) {
      is_made = fs::remove_all(fs::path(out_) / split / episode) > 0 || is_made;
    }
    EXPECT_NE(is_rejected, is_made) << name;
    fs::remove(file);
  }
  fs::remove(fs::path(in_) / "memory_demo.hdf5");
  fs::remove(fs::path(in_) / "silent_demo.hdf5");
  EXPECT_EQ(num_right("libero"), "6");
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
  expect_reason("episode_000004", "without the bytes of an image");
  expect_reason("episode_000005", "does not hold 7 numbers");
  expect_reason("episode_000006", "its task changes");
  expect_reason("episode_000007", "neither PNG nor JPEG");
  expect_reason("episode_000008", "has 2 rows, 43 are listed");
  expect_reason("episode_000009", "has no file");
  EXPECT_EQ(rejected().size(), 9U);
  EXPECT_EQ(base::read_file(fs::path(out_) /
                            "train/episode_000000/language_task.txt"),
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
  EXPECT_EQ(num_right("libero"), "6");
}

}  // namespace
}  // namespace lockstep

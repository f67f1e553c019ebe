// lockstep-prepare against data sets that LeRobot 0.4 writes; LeRobot's own
// reader gives the frames to compare with.
#include "interop/prepare_fixture.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::ProcessResult;

class LerobotInterop : public testing::PrepareFixture {
 protected:
  void lerobot(const Words& words) {
    python("lerobot_files.py", words,
           {.environment = {{"PYTHONPATH", LEROBOT_PACKAGES},
                            {"HF_HUB_OFFLINE", "1"},
                            {"HF_HOME", folder_.path() / "cache"}},
            .timeout_seconds = 280});
  }
  // Frames of both cameras, all as LeRobot reads them, for each way to share
  // the episodes out: one process decodes on from episode to episode, several
  // begin somewhere in a file.
  void expect_all_right(const std::string& kind) {
    lerobot({"make", kind, in_});
    const std::string alone = out_;
    const std::string shared = out_ + "_shared";
    ASSERT_EQ(prepare({"--workers", "1"}).exit_code, 0);
    EXPECT_EQ(num_hidden(), 0U);
    out_ = shared;
    ASSERT_EQ(prepare({"--workers", "4"}).exit_code, 0);
    EXPECT_EQ(num_hidden(), 0U);
    lerobot({"check", in_, alone, shared});
    EXPECT_EQ(printed_, "192 192");
  }
};

TEST_F(LerobotInterop, Av1VideosPixelForPixel) { expect_all_right("av1"); }

TEST_F(LerobotInterop, H264VideosPixelForPixel) { expect_all_right("h264"); }

TEST_F(LerobotInterop, VideosWithRareKeyFramesPixelForPixel) {
  expect_all_right("gop");
}

TEST_F(LerobotInterop, ImagesInFilesOfManyEpisodesPixelForPixel) {
  expect_all_right("image");
}

TEST_F(LerobotInterop, Version21WithVideosPixelForPixel) {
  expect_all_right("old");
}

TEST_F(LerobotInterop, EpisodesThatAreThereAreSkipped) {
  lerobot({"make", "gop", in_});
  ASSERT_EQ(prepare({"--val_fraction", "0"}).exit_code, 0);
  for (const char* name : {"episode_000001", "episode_000004"}) {
    fs::remove_all(fs::path(out_) / "train" / name);
  }
  const ProcessResult result =
      prepare({"--val_fraction", "0", "--workers", "1"});
  EXPECT_NE(result.out.find("Made 2 episodes"), std::string::npos)
      << result.out;
  lerobot({"check", in_, out_});
  EXPECT_EQ(printed_, "192");
}

TEST_F(LerobotInterop, DamagedVideosCostTheirEpisodesOnly) {
  lerobot({"make", "damaged", in_});
  const ProcessResult result = prepare({"--val_fraction", "0"});
  EXPECT_EQ(result.exit_code, 4) << result.out << result.err;
  expect_reason("episode_000000", "file-000.mp4'");
  expect_reason("episode_000001", "is it a whole MP4 file?");
  expect_reason("episode_000002", "there is no file");
  expect_reason("episode_000003",
                "no frame at 0.030000 s: the nearest is at 0.00");
  expect_reason("episode_000003", "--tolerance_s 0.03");
  expect_reason("episode_000006", "file-006.mp4'");
  EXPECT_EQ(rejected().size(), 5U);
  EXPECT_EQ(num_hidden(), 0U);
  // As LeRobot's own tolerance_s.
  EXPECT_EQ(prepare({"--val_fraction", "0", "--tolerance_s", "0.04"}).exit_code,
            4);
  EXPECT_FALSE(rejected().contains("episode_000003"));
  fs::remove(fs::path(in_) / "meta/episodes/chunk-000/file-000.parquet");
  const ProcessResult incomplete = prepare();
  EXPECT_EQ(incomplete.exit_code, 2);
  EXPECT_NE(incomplete.err.find("holds no meta/episodes"), std::string::npos)
      << incomplete.err;
}

}  // namespace
}  // namespace lockstep

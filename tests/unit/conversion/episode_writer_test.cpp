#include "lockstep/datasets/conversion/episode_writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

const std::string kPng = "\x89PNG\r\n\x1a\n...";
const std::string kJpeg = "\xFF\xD8\xFF...";

size_t num_entries(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

class Writer : public ::testing::Test {
 protected:
  void fill(conversion::EpisodeWriter& writer,
            const std::string& sentence = "lift it") {
    writer.add_image(conversion::EpisodeCamera::kWorkspace, kPng);
    writer.add_image(conversion::EpisodeCamera::kWrist, kJpeg);
    writer.set_actions(actions_);
    writer.set_sentence(sentence);
  }
  template <typename Change>
  std::string error_of(const Change& change) {
    conversion::EpisodeWriter writer(place_);
    try {
      change(writer);
      writer.commit();
    } catch (const FormatError& problem) {
      return problem.what();
    }
    return "";
  }

  TempDir folder_;
  fs::path place_ = folder_.path() / "train" / "episode_a";
  std::vector<formats::Action> actions_ = {{1, 2, 3, 4, 5, 6, -1}};
};

TEST_F(Writer, MakesAnEpisodeAtOnce) {
  conversion::EpisodeWriter writer(place_);
  fill(writer);
  EXPECT_FALSE(fs::exists(place_));
  writer.commit();
  EXPECT_EQ(base::read_file(place_ / "images/workspace_000000.png"), kPng);
  EXPECT_EQ(base::read_file(place_ / "images/wrist_000000.jpg"), kJpeg);
  EXPECT_EQ(base::read_file(place_ / "actions.csv"),
            "x,y,z,roll,pitch,yaw,gripper\n1,2,3,4,5,6,-1\n");
  EXPECT_EQ(base::read_file(place_ / "language_task.txt"), "lift it\n");
  EXPECT_EQ(num_entries(folder_.path() / "train"), 1U);
}

TEST_F(Writer, OthersMayReadWhatItMade) {
  const mode_t before = umask(022);
  {
    conversion::EpisodeWriter writer(place_);
    fill(writer);
    writer.commit();
  }
  umask(before);
  EXPECT_EQ(fs::status(place_).permissions(), fs::perms(0755));
}

TEST_F(Writer, LeavesNothingWithoutCommit) {
  {
    conversion::EpisodeWriter writer(place_);
    fill(writer);
  }
  EXPECT_EQ(num_entries(folder_.path() / "train"), 0U);
}

TEST_F(Writer, ExchangesAnEpisodeThatIsThere) {
  for (const char* sentence : {"old", "new"}) {
    conversion::EpisodeWriter writer(place_);
    fill(writer, sentence);
    writer.commit();
  }
  EXPECT_EQ(base::read_file(place_ / "language_task.txt"), "new\n");
  EXPECT_EQ(num_entries(folder_.path() / "train"), 1U);
}

TEST_F(Writer, RefusesWhatMakesNoEpisode) {
  EXPECT_EQ(error_of([](conversion::EpisodeWriter&) {}),
            "there is no sentence");
  EXPECT_EQ(error_of([](conversion::EpisodeWriter& writer) {
              writer.set_sentence("a");
            }),
            "there are no frames");
  EXPECT_EQ(error_of([&](conversion::EpisodeWriter& writer) {
              fill(writer);
              writer.add_image(conversion::EpisodeCamera::kWorkspace, kPng);
            }),
            "2 workspace images, but 1 of the wrist");
  EXPECT_EQ(error_of([](conversion::EpisodeWriter& writer) {
              writer.set_sentence("a");
              writer.add_image(conversion::EpisodeCamera::kWorkspace, kPng);
            }),
            "0 actions for 1 frames");
  EXPECT_EQ(error_of([](conversion::EpisodeWriter& writer) {
              writer.add_image(conversion::EpisodeCamera::kWrist, "GIF89a");
            }),
            "image 0 of wrist is neither PNG nor JPEG");
  EXPECT_EQ(error_of([](conversion::EpisodeWriter& writer) {
              writer.set_sentence(" ");
            }),
            "the sentence is empty");
  EXPECT_EQ(error_of([](conversion::EpisodeWriter& writer) {
              writer.set_sentence("\xFF");
            }),
            "the sentence is not UTF-8 text");
  actions_[0][3] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error_of([&](conversion::EpisodeWriter& writer) { fill(writer); }),
            "action 0: roll is inf, no finite number");
  EXPECT_EQ(num_entries(folder_.path() / "train"), 0U);
}

TEST_F(Writer, NeedsNoWristViews) {
  EXPECT_EQ(error_of([&](conversion::EpisodeWriter& writer) {
              writer.add_image(conversion::EpisodeCamera::kWorkspace, kPng);
              writer.set_actions(actions_);
              writer.set_sentence("a");
            }),
            "");
  EXPECT_TRUE(fs::exists(place_));
}

TEST_F(Writer, SaysWhichFileAFullDiskKeptItFromWriting) {
  const testing::FileSizeLimit full(4);
  conversion::EpisodeWriter writer(place_);
  try {
    fill(writer);
    FAIL();
  } catch (const IoError& problem) {
    EXPECT_NE(std::string(problem.what()).find("workspace_000000.png"),
              std::string::npos)
        << problem.what();
  }
}

TEST_F(Writer, LeftoversOfKilledProcessesAreRemoved) {
  const fs::path split = folder_.path() / "train";
  fs::create_directories(split / ".partial-abc" / "images");
  fs::create_directories(split / "episode_b");
  conversion::remove_partial_episodes(split);
  EXPECT_EQ(num_entries(split), 1U);
  conversion::remove_partial_episodes(folder_.path() / "nowhere");
}

}  // namespace
}  // namespace lockstep

#include "lockstep/datasets/conversion/conversion.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <set>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

// Episodes of one frame; reading number 3 fails. Some crash or hang.
class FewEpisodes final : public conversion::EpisodeSource {
 public:
  explicit FewEpisodes(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      names_.push_back("episode_" + std::to_string(i));
    }
  }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<conversion::Rejection>& rejected() const override {
    return rejected_;
  }
  std::string group(size_t /*episode*/) const override { return group_name; }
  void read(size_t episode, conversion::EpisodeWriter& writer) override {
    if (episode == 3) throw FormatError("damaged");
    writer.add_image(conversion::EpisodeCamera::kWorkspace,
                     "\x89PNG\r\n\x1a\n");
    if (crashing.contains(episode)) _exit(7);
    while (hanging.contains(episode)) pause();
    writer.set_sentence(sentence);
    writer.set_actions(std::vector<formats::Action>{formats::Action{}});
  }

  std::string sentence = "lift it";
  std::string group_name;
  std::set<size_t> crashing;
  std::set<size_t> hanging;

 private:
  std::vector<std::string> names_;
  std::vector<conversion::Rejection> rejected_ = {
      {.name = "z.hdf5", .reason = "cut off"}};
};

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.insert(entry.path().filename());
  }
  return names;
}

class Converting : public ::testing::Test {
 protected:
  conversion::ConversionCounts convert() {
    return conversion::convert_episodes(source_, config_, {});
  }

  TempDir folder_;
  FewEpisodes source_{40};
  conversion::ConversionConfig config_ = {
      .output = folder_.path() / "out", .val_fraction = 0.25, .workers = 4};
};

TEST_F(Converting, MakesEachEpisodeOnce) {
  const conversion::ConversionCounts counts = convert();
  EXPECT_EQ(counts.num_made, 39U);
  EXPECT_EQ(counts.num_kept, 0U);
  ASSERT_EQ(counts.rejected.size(), 2U);
  EXPECT_EQ(counts.rejected[0].name, "episode_3");
  EXPECT_EQ(counts.rejected[0].reason, "damaged");
  EXPECT_EQ(counts.rejected[1].name, "z.hdf5");
  const auto train = names_in(config_.output / "train");
  const auto val = names_in(config_.output / "val");
  EXPECT_EQ(counts.in_split.at("train"), train.size());
  EXPECT_EQ(counts.in_split.at("val"), val.size());
  EXPECT_EQ(train.size() + val.size(), 39U);
  EXPECT_GT(val.size(), 3U);
  EXPECT_LT(val.size(), 18U);

  source_.sentence = "another";
  const conversion::ConversionCounts again = convert();
  EXPECT_EQ(again.num_made, 0U);
  EXPECT_EQ(again.num_kept, 39U);
  EXPECT_EQ(again.in_split, counts.in_split);
}

TEST_F(Converting, GoesOnWhenReadingAnEpisodeCrashes) {
  source_.crashing = {5, 6, 20};
  for (const char* group : {"", "one file"}) {
    source_.group_name = group;
    const conversion::ConversionCounts counts = convert();
    EXPECT_EQ(counts.num_made + counts.num_kept, 36U);
    ASSERT_EQ(counts.rejected.size(), 5U);
    EXPECT_EQ(counts.rejected[0].name, "episode_20");
    EXPECT_EQ(counts.rejected[0].reason,
              "reading it ended the process with exit code 7; the file is "
              "damaged");
    EXPECT_EQ(counts.rejected[1].reason, "damaged");
    for (const char* split : {"train", "val"}) {
      for (const std::string& name : names_in(config_.output / split)) {
        EXPECT_FALSE(name.starts_with(".")) << name;
      }
    }
  }
}

TEST_F(Converting, GoesOnWhenReadingAnEpisodeHangs) {
  source_ = FewEpisodes(3);
  source_.hanging = {1};
  config_.limits.silence = std::chrono::seconds(4);
  const conversion::ConversionCounts counts = convert();
  EXPECT_EQ(counts.num_made, 2U);
  ASSERT_EQ(counts.rejected.size(), 2U);
  EXPECT_EQ(counts.rejected[0].name, "episode_1");
  EXPECT_EQ(counts.rejected[0].reason,
            "reading it made no progress for 4 s, and was stopped");
}

TEST_F(Converting, GivesAFileUpOnWhichAllAttemptsDie) {
  for (size_t i = 10; i < 40; ++i) source_.crashing.insert(i);
  source_.group_name = "one file";
  config_.workers = 1;
  std::vector<int64_t> progress;
  const conversion::ConversionCounts counts = conversion::convert_episodes(
      source_, config_, [&](int64_t done, int64_t total) {
        EXPECT_EQ(total, 40);
        progress.push_back(done);
      });
  EXPECT_EQ(counts.num_made, 9U);
  EXPECT_EQ(counts.rejected.size(), 32U);
  EXPECT_EQ(progress.size(), 40U);
}

TEST_F(Converting, AnewWhenAsked) {
  convert();
  source_.sentence = "another";
  config_.overwrite = true;
  EXPECT_EQ(convert().num_made, 39U);
  for (const std::string& name : names_in(config_.output / "train")) {
    EXPECT_EQ(
        base::read_file(config_.output / "train" / name / "language_task.txt"),
        "another\n");
  }
}

TEST_F(Converting, WithAnotherFractionLeavesNoEpisodeInBothSplits) {
  convert();
  config_.val_fraction = 0.5;
  const conversion::ConversionCounts more = convert();
  EXPECT_EQ(more.num_made, 0U);
  EXPECT_EQ(more.num_kept, 39U);
  EXPECT_EQ(more.in_split.at("val"), names_in(config_.output / "val").size());
  EXPECT_EQ(more.in_split.at("train"),
            names_in(config_.output / "train").size());
  config_.val_fraction = 0;
  EXPECT_EQ(convert().in_split.at("train"), 39U);
  EXPECT_EQ(names_in(config_.output / "val").size(), 0U);
}

TEST_F(Converting, MoreEpisodesKeepTheSplitOfTheOthers) {
  convert();
  const auto before = names_in(config_.output / "val");
  source_ = FewEpisodes(80);
  convert();
  const auto after = names_in(config_.output / "val");
  for (const std::string& name : before) EXPECT_TRUE(after.contains(name));
}

TEST_F(Converting, RemovesWhatAKilledRunLeft) {
  fs::create_directories(config_.output / "train" / ".partial-abc" / "images");
  fs::create_directories(config_.output / "val" / ".partial-def");
  config_.val_fraction = 0;
  convert();
  EXPECT_EQ(names_in(config_.output / "train").size(), 39U);
  EXPECT_EQ(names_in(config_.output / "val").size(), 0U);
}

TEST_F(Converting, RefusesAFolderThatAnotherWritesTo) {
  fs::create_directories(config_.output);
  const base::FileDescriptor other(open(config_.output.c_str(), O_RDONLY));
  ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
  EXPECT_THROW(convert(), IoError);
}

TEST_F(Converting, EndsWhenNothingCanBeWritten) {
  folder_.write("out", "a file");
  EXPECT_THROW(convert(), IoError);
}

}  // namespace
}  // namespace lockstep

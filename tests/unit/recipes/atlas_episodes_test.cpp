#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/data/image_ops.h"
#include "lockstep/datasets/episodes/episodes.h"
#include "lockstep/error.h"
#include "support/images.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

std::string actions_text(int rows) {
  std::string text = "x,y,z,roll,pitch,yaw,gripper\n";
  for (int i = 0; i < rows; ++i) text += fmt::format("{},0,0,0,0,0,1\n", i);
  return text;
}

// data/train/episode_a with three frames of both cameras; images are empty
// files, since they are not opened.
class Episodes : public ::testing::Test {
 protected:
  Episodes() { add_episode("train/episode_a", 3); }

  void add_episode(const std::string& name, int num_frames) {
    for (int i = 0; i < num_frames; ++i) {
      write(fmt::format("{}/images/workspace_{:03}.png", name, i), "");
      write(fmt::format("{}/images/wrist_{:03}.png", name, i), "");
    }
    write(name + "/actions.csv", actions_text(num_frames));
    write(name + "/language_task.txt", "lift the cup\n");
  }
  void write(const std::string& name, std::string_view text) {
    fs::create_directories((folder_.path() / name).parent_path());
    folder_.write(name, text);
  }
  void remove(const std::string& name) {
    fs::remove_all(folder_.path() / name);
  }

  episodes::EpisodeConfig config() const {
    return {.data_dir = folder_.path()};
  }

  // The message, with the folder as DATA.
  template <typename ErrorKind>
  std::string error(const episodes::EpisodeConfig& wanted) const {
    try {
      episodes::read_episodes(wanted);
    } catch (const ErrorKind& problem) {
      std::string text = problem.what();
      for (size_t at; (at = text.find(folder_.path().string())) != text.npos;) {
        text.replace(at, folder_.path().string().size(), "DATA");
      }
      return text;
    }
    return "no error";
  }
  template <typename ErrorKind>
  std::string error() const {
    return error<ErrorKind>(config());
  }

  TempDir folder_;
};

TEST_F(Episodes, AreReadInTheOrderOfTheirNames) {
  add_episode("train/episode_c", 1);
  add_episode("train/episode_b", 2);
  write("train/episode_b/language_task.txt", "  open the drawer\r\n");
  write("train/.episode_d/x", "");
  write("train/notes/x", "");
  write("train/episode_file", "");
  write("train/episode_a/images/.workspace_9.png", "");
  write("train/episode_a/images/depth_000.png", "");
  write("train/episode_a/images/workspace_000.txt", "");
  write("train/episode_a/actions.csv", actions_text(5));

  const auto episodes = episodes::read_episodes(config());

  ASSERT_EQ(episodes.size(), 3U);
  EXPECT_EQ(episodes[0].name, "episode_a");
  EXPECT_EQ(episodes[0].folder, folder_.path() / "train/episode_a");
  EXPECT_EQ(episodes[0].sentence, "lift the cup");
  EXPECT_EQ(episodes[0].num_frames(), 3U);
  EXPECT_EQ(episodes[0].actions.size(), 3U);  // 5 in the file.
  EXPECT_EQ(episodes[0].actions[2], (formats::Action{2, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(episodes[0].workspace[1],
            folder_.path() / "train/episode_a/images/workspace_001.png");
  EXPECT_EQ(episodes[0].wrist[2],
            folder_.path() / "train/episode_a/images/wrist_002.png");
  EXPECT_EQ(episodes[1].sentence, "open the drawer");
  EXPECT_EQ(episodes[2].name, "episode_c");
}

TEST_F(Episodes, ImagesAreOrderedByNumberWhateverTheDigits) {
  remove("train/episode_a/images");
  write("train/episode_a/actions.csv", actions_text(11));
  for (int i = 1; i <= 11; ++i) {
    write(fmt::format("train/episode_a/images/workspace_{}.JPG", i), "");
    write(fmt::format("train/episode_a/images/wrist_{:06}.jpeg", i), "");
  }
  const auto episodes = episodes::read_episodes(config());
  EXPECT_EQ(episodes[0].workspace[1].filename(), "workspace_2.JPG");
  EXPECT_EQ(episodes[0].workspace[10].filename(), "workspace_11.JPG");
  EXPECT_EQ(episodes[0].wrist[10].filename(), "wrist_000011.jpeg");
}

TEST_F(Episodes, SentenceMayLieInMetadata) {
  remove("train/episode_a/language_task.txt");
  write("train/episode_a/metadata.json", R"({"language_task": "push it"})");
  EXPECT_EQ(episodes::read_episodes(config())[0].sentence, "push it");
  write("train/episode_a/language_task.txt", "pull it");
  EXPECT_EQ(episodes::read_episodes(config())[0].sentence, "pull it");
}

TEST_F(Episodes, WithoutSentenceNameTheFileToWrite) {
  const std::string remedy =
      "episode 'DATA/train/episode_a' has no sentence; write what it shows "
      "into 'DATA/train/episode_a/language_task.txt'";
  remove("train/episode_a/language_task.txt");
  EXPECT_EQ(error<FormatError>(), remedy);
  for (const char* json : {"[]", "{}", R"({"language_task": 3})", "null"}) {
    write("train/episode_a/metadata.json", json);
    EXPECT_EQ(error<FormatError>(), remedy);
  }
  write("train/episode_a/metadata.json", "{");
  EXPECT_EQ(error<FormatError>(),
            "'DATA/train/episode_a/metadata.json' is not JSON");
  write("train/episode_a/language_task.txt", " \n");
  EXPECT_EQ(error<FormatError>(),
            "'DATA/train/episode_a/language_task.txt' is empty; write into it, "
            "as a sentence, what the episode shows");
  write("train/episode_a/language_task.txt", "caf\xE9");
  EXPECT_EQ(error<FormatError>(),
            "'DATA/train/episode_a/language_task.txt' is not UTF-8 text");
}

TEST_F(Episodes, WithoutWristViewsSayHowToTrain) {
  for (int i = 0; i < 3; ++i) {
    remove(fmt::format("train/episode_a/images/wrist_00{}.png", i));
  }
  EXPECT_EQ(error<ConfigError>(),
            "'DATA/train/episode_a/images' has no images of the wrist camera "
            "(wrist_000.png); set use_wrist_camera: false to train without");
  episodes::EpisodeConfig one = config();
  one.use_wrist_camera = false;
  EXPECT_TRUE(episodes::read_episodes(one)[0].wrist.empty());
}

TEST_F(Episodes, RefuseImagesThatDoNotFitTogether) {
  remove("train/episode_a/images/wrist_002.png");
  EXPECT_EQ(error<FormatError>(),
            "'DATA/train/episode_a/images' has 3 workspace images from "
            "number 0 on and 2 wrist images from number 0 on; there must be "
            "one of each per frame (or set use_wrist_camera: false)");
  remove("train/episode_a/images/workspace_001.png");
  EXPECT_EQ(error<FormatError>(),
            "'DATA/train/episode_a/images': the image with number 1 before "
            "'workspace_002.png' is missing; copy the episode again, or remove "
            "it");
  remove("train/episode_a/images/workspace_000.png");
  EXPECT_EQ(error<FormatError>(),
            "'DATA/train/episode_a/images/workspace_002.png' is the first "
            "image of its camera; images are numbered from 0 or 1, without "
            "gaps");
  write("train/episode_a/images/workspace_2.jpg", "");
  EXPECT_EQ(error<FormatError>(),
            "'DATA/train/episode_a/images' holds 'workspace_002.png' and "
            "'workspace_2.jpg', both with number 2; remove one");
  remove("train/episode_a/images");
  EXPECT_EQ(error<FormatError>(),
            "'DATA/train/episode_a/images' is missing; it holds "
            "workspace_000.png, wrist_000.png, ...");
  fs::create_directories(folder_.path() / "train/episode_a/images");
  EXPECT_EQ(error<FormatError>(),
            "'DATA/train/episode_a/images' has no frames: there is no "
            "workspace_000.png (or .jpg) in it");
}

TEST_F(Episodes, RefuseActionsThatDoNotFit) {
  write("train/episode_a/actions.csv", actions_text(2));
  EXPECT_EQ(error<FormatError>(),
            "'DATA/train/episode_a/actions.csv' has 2 actions for 3 frames; "
            "every image needs one");
  write("train/episode_a/actions.csv",
        "x,y,z,roll,pitch,yaw,gripper\n0,0,0,nan,0,0,1\n");
  EXPECT_EQ(error<FormatError>(),
            "'DATA/train/episode_a/actions.csv', line 2: column 'roll' (roll) "
            "holds 'nan', which is not a finite number");
  remove("train/episode_a/actions.csv");
  EXPECT_EQ(error<FormatError>(),
            "'DATA/train/episode_a/actions.csv' is missing; it holds one line "
            "x,y,z,roll,pitch,yaw,gripper per frame below a header");
  write("train/episode_a/actions.parquet", "");
  EXPECT_EQ(error<ConfigError>(),
            "'DATA/train/episode_a' has its actions as parquet only; this "
            "command writes them as csv beside it:\n"
            "  lockstep prepare atlas --from parquet --input 'DATA' --output "
            "'DATA'");
}

TEST_F(Episodes, OfAMissingSplitNameThoseThatExist) {
  add_episode("test/episode_a", 1);
  write("empty/x", "");
  episodes::EpisodeConfig other = config();
  other.split = "val";
  EXPECT_EQ(error<ConfigError>(other),
            "data_dir 'DATA' has no split 'val': it has test, train; set "
            "train_split and val_split to one of them");
  other.data_dir = (folder_.path() / "train").string();
  EXPECT_EQ(error<ConfigError>(other),
            "data_dir 'DATA/train' has no split 'val': it holds episodes "
            "itself; move them to 'DATA/train/val', or name the folder above");
  other.data_dir = (folder_.path() / "nowhere").string();
  EXPECT_EQ(error<ConfigError>(other),
            "data_dir 'DATA/nowhere' is not a folder; it holds val/episode_*/ "
            "(data_dir: builtin:reach needs no files)");
  other.data_dir = (folder_.path() / "empty").string();
  EXPECT_EQ(error<ConfigError>(other),
            "data_dir 'DATA/empty' has no split 'val': episodes lie in "
            "DATA/empty/val/episode_*/, and data_dir: builtin:reach needs no "
            "files");
  other = config();
  other.split = "empty";
  EXPECT_EQ(error<ConfigError>(other),
            "'DATA/empty' holds no episode; episodes are folders named "
            "episode_000 and so on");
}

TEST_F(Episodes, OfOtherDataSetsNameTheCommandThatConverts) {
  write("robot/meta/info.json", "{}");
  write("libero/libero_10/lift_the_cup_demo.hdf5", "");
  episodes::EpisodeConfig other = config();
  other.data_dir = (folder_.path() / "robot/").string();
  EXPECT_EQ(error<ConfigError>(other),
            "data_dir 'DATA/robot/' has no split 'train': it is a data set of "
            "another kind; this command converts it to episodes:\n"
            "  lockstep prepare atlas --from lerobot --input 'DATA/robot/' "
            "--output 'DATA/robot_episodes'");
  other.data_dir = (folder_.path() / "libero").string();
  EXPECT_EQ(error<ConfigError>(other),
            "data_dir 'DATA/libero' has no split 'train': it is a data set of "
            "another kind; this command converts it to episodes:\n"
            "  lockstep prepare atlas --from libero --input 'DATA/libero' "
            "--output 'DATA/libero_episodes'");
}

TEST_F(Episodes, ViewsAreScaledToASquare) {
  const data::Image image = testing::test_image(50, 40);
  const fs::path file = folder_.path() / "a.png";
  data::write_png(file, image);
  const data::Image view = episodes::load_view(file, 28);
  const data::Image expected =
      data::resize(image, {.width = 28, .height = 28}, data::Filter::kBicubic);
  EXPECT_EQ(view.width, 28);
  EXPECT_EQ(view.height, 28);
  EXPECT_EQ(view.pixels, expected.pixels);
  EXPECT_THROW(episodes::load_view(folder_.path() / "b.png", 28), IoError);
}

}  // namespace
}  // namespace lockstep

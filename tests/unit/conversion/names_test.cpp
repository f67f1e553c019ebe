#include <gtest/gtest.h>

#include <set>

#include "lockstep/datasets/conversion/episode_name.h"
#include "lockstep/datasets/conversion/lerobot_meta.h"
#include "lockstep/datasets/conversion/lerobot_path.h"
#include "lockstep/datasets/conversion/libero_names.h"
#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

TEST(LiberoSentence, IsTheInstructionElseTheFilesName) {
  const std::string name = "KITCHEN_SCENE3_turn_on_the_stove_demo";
  EXPECT_EQ(conversion::libero_sentence(
                R"({"language_instruction": " lift it "})", name),
            "lift it");
  EXPECT_EQ(conversion::libero_sentence(
                R"({"language_instruction": ["li", "ft"]})", name),
            "lift");
  EXPECT_EQ(conversion::libero_sentence(
                R"({"language_instruction": "\"lift\""})", name),
            "lift");
  for (const char* info : {R"({"language_instruction": ""})", "{}", "[1]", "",
                           R"({"language_instruction": 3})"}) {
    EXPECT_EQ(conversion::libero_sentence(info, name), "turn on the stove")
        << info;
  }
  EXPECT_EQ(conversion::libero_sentence(std::nullopt, name),
            "turn on the stove");
  EXPECT_EQ(conversion::libero_sentence(std::nullopt, "put_the_bowl_away_demo"),
            "put the bowl away");
  EXPECT_EQ(conversion::libero_sentence(std::nullopt, "demonstrate"),
            "demonstrate");
  EXPECT_THROW(conversion::libero_sentence(std::nullopt, "_demo"), FormatError);
}

TEST(FindCamera, TakesTheImagesOfACamera) {
  const std::vector<std::string> names = {
      "agentview_depth",          "agentview_rgb", "joint_states",
      "robot0_eye_in_hand_image", "side_left_rgb", "side_right_rgb"};
  EXPECT_EQ(conversion::find_camera(names, "agentview"), "agentview_rgb");
  EXPECT_EQ(conversion::find_camera(names, "eye_in_hand"),
            "robot0_eye_in_hand_image");
  EXPECT_EQ(conversion::find_camera(names, "side_left_rgb"), "side_left_rgb");
  EXPECT_THROW(conversion::find_camera(names, "side"), FormatError);
  EXPECT_THROW(conversion::find_camera(names, "front"), FormatError);
}

TEST(EpisodeName, IsUsableAndTellsTextsApart) {
  EXPECT_EQ(conversion::episode_name("lift-demo_3"), "episode_lift-demo_3");
  const std::string spaced = conversion::episode_name("lift it");
  EXPECT_TRUE(spaced.starts_with("episode_lift_it-")) << spaced;
  EXPECT_NE(spaced, conversion::episode_name("lift/it"));
  const std::string a = conversion::episode_name(std::string(500, 'a') + "1");
  const std::string b = conversion::episode_name(std::string(500, 'a') + "2");
  EXPECT_LT(a.size(), 230U);
  EXPECT_NE(a, b);
}

TEST(StableFraction, IsSpreadEvenlyAndNeverChanges) {
  size_t num_below = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double fraction =
        conversion::stable_fraction("episode_" + std::to_string(i));
    EXPECT_GE(fraction, 0);
    EXPECT_LT(fraction, 1);
    num_below += fraction < 0.1 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(num_below), 1000, 100);
  // Written once: another value would move episodes between splits.
  EXPECT_DOUBLE_EQ(conversion::stable_fraction("episode_000000"),
                   0.28370737308910776);
}

class Lerobot : public ::testing::Test {
 protected:
  void info(const std::string& text) {
    std::filesystem::create_directories(folder_.path() / "meta");
    folder_.write("meta/info.json", text);
  }
  conversion::LerobotMeta read(
      const std::vector<std::string>& cameras = {}) const {
    return conversion::read_lerobot_meta(folder_.path(), cameras);
  }
  std::string error(const std::vector<std::string>& cameras = {}) const {
    try {
      read(cameras);
    } catch (const Error& problem) {
      return problem.what();
    }
    return "";
  }

  static std::vector<std::string> columns_of(
      const conversion::LerobotMeta& meta) {
    std::vector<std::string> columns;
    for (const auto& camera : meta.cameras) columns.push_back(camera.column);
    return columns;
  }

  TempDir folder_;
};

TEST_F(Lerobot, FindsVideosAndPathsOfVersion3) {
  info(R"({"codebase_version": "v3.0", "chunks_size": 500,
      "data_path": "rows/{chunk_index:03d}.parquet", "features": {
      "observation.images.top": {"dtype": "video"},
      "wrist_image": {"dtype": "image"},
      "action": {"dtype": "float32"}}})");
  const conversion::LerobotMeta meta = read();
  EXPECT_EQ(meta.version, 3);
  ASSERT_EQ(meta.cameras.size(), 2U);
  EXPECT_EQ(meta.cameras[0].column, "observation.images.top");
  EXPECT_TRUE(meta.cameras[0].is_video);
  EXPECT_FALSE(meta.cameras[1].is_video);
  EXPECT_EQ(meta.data_path, "rows/{chunk_index:03d}.parquet");
  EXPECT_EQ(meta.video_path,
            "videos/{video_key}/chunk-{chunk_index:03d}/"
            "file-{file_index:03d}.mp4");
  EXPECT_EQ(meta.chunk_size, 500);
}

TEST(LerobotPath, FillsFieldsIn) {
  const conversion::LerobotPathFields fields = {
      {"chunk_index", int64_t{7}},
      {"file_index", int64_t{1234}},
      {"video_key", "observation.images.top"}};
  EXPECT_EQ(
      conversion::lerobot_path("videos/{video_key}/chunk-{chunk_index:03d}/"
                               "file-{file_index:03d}.mp4",
                               fields),
      "videos/observation.images.top/chunk-007/file-1234.mp4");
  EXPECT_EQ(conversion::lerobot_path("{chunk_index}-{chunk_index:d}", fields),
            "7-7");
}

TEST(LerobotPath, RefusesWhatLeadsOutOfTheDataSet) {
  const conversion::LerobotPathFields fields = {{"video_key", "../../secret"},
                                                {"number", int64_t{1}}};
  for (const char* pattern :
       {"videos/{video_key}", "/etc/passwd", "../a", "", "{other}",
        "{number:9999d}", "{number:x}", "{video_key:03d}", "{number!r}"}) {
    EXPECT_THROW(conversion::lerobot_path(pattern, fields), FormatError)
        << pattern;
  }
}

TEST_F(Lerobot, FindsColumnsAndTasks) {
  info(R"({"codebase_version": "v2.1", "features": {
      "observation.images.top": {"dtype": "image"},
      "observation.images.wrist": {"dtype": "image"},
      "action": {"dtype": "float32"}, "odd": 3}})");
  folder_.write("meta/tasks.jsonl",
                "{\"task_index\": 4, \"task\": \"lift\"}\n\n{\"task\": 3}\n");
  folder_.write("meta/episodes.jsonl",
                "{\"episode_index\": 7, \"tasks\": [\"lift\"], \"length\": 9}\n"
                "{\"episode_index\": 8, \"tasks\": [\"a\", \"b\"]}\n");
  const conversion::LerobotMeta meta = read();
  EXPECT_EQ(meta.version, 2);
  EXPECT_EQ(columns_of(meta),
            (std::vector<std::string>{"observation.images.top",
                                      "observation.images.wrist"}));
  EXPECT_FALSE(meta.cameras[0].is_video);
  EXPECT_EQ(meta.action, "action");
  EXPECT_EQ(meta.tasks, (std::map<int64_t, std::string>{{4, "lift"}}));
  EXPECT_EQ(meta.episodes.at(7).sentence, "lift");
  EXPECT_EQ(meta.episodes.at(7).num_frames, 9);
  EXPECT_EQ(meta.episodes.at(8).sentence, "");
  EXPECT_EQ(columns_of(read({"top"})),
            (std::vector<std::string>{"observation.images.top"}));
}

TEST_F(Lerobot, SaysWhatItCannotRead) {
  EXPECT_NE(error().find("holds no meta/info.json"), std::string::npos);
  info("{");
  EXPECT_NE(error().find("info.json' is not a JSON object"), std::string::npos);
  info(R"({"codebase_version": "v4.0"})");
  EXPECT_NE(error().find("is of version v4.0"), std::string::npos);
  info(R"({"features": {"image": {"dtype": "image"}, "action": {}}})");
  EXPECT_EQ(error(),
            "which image is the workspace's and which the wrist's is not "
            "clear; its images are image. Name the cameras by --cameras "
            "WORKSPACE,WRIST, or --cameras WORKSPACE alone");
  EXPECT_EQ(error({"image"}), "");
  EXPECT_NE(error({"side"}).find("there is no camera 'side'"),
            std::string::npos);
  info(R"({"features": {"image": {"dtype": "image"}}})");
  EXPECT_NE(error({"image"}).find("neither a column 'actions' nor 'action'"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep

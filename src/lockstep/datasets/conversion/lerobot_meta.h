// The folder meta/ of a LeRobot data set: what its columns and tasks are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::conversion {

struct LerobotMeta {
  int64_t version = 2;  // 2.x: a file per episode; 3.x: files of many episodes.
  // The workspace's, and the wrist's unless it was left out.
  struct Camera {
    std::string column = {};
    bool is_video = false;  // Else its images are in the parquet files.
  };
  std::vector<Camera> cameras = {};
  std::string action = {};
  // Patterns of paths, see lerobot_path().
  std::string data_path = {};
  std::string video_path = {};
  int64_t chunk_size = 1000;                  // Episodes per chunk in 2.x.
  std::map<int64_t, std::string> tasks = {};  // By task_index.
  // The data set's list by episode_index; empty without it.
  struct Video {
    int64_t chunk = 0;
    int64_t file = 0;
    double begin = 0;  // Seconds into the file.
  };
  struct Listed {
    std::string sentence = {};  // Empty unless the episode has one task.
    std::optional<int64_t> num_frames = {};
    int64_t chunk = 0;  // Place of its rows in 3.x.
    int64_t file = 0;
    std::vector<Video> videos = {};  // In 3.x, for each camera that is one.
  };
  std::map<int64_t, Listed> episodes = {};
};

// `cameras` are names of columns, with or without "observation.images."; none:
// image and wrist_image, or those that look like them. The tables of 3.x are
// left to read_lerobot_tables(). Throws ConfigError for other kinds and
// versions of data sets, FormatError for damaged files.
LerobotMeta read_lerobot_meta(const std::filesystem::path& folder,
                              const std::vector<std::string>& cameras);

}  // namespace lockstep::conversion

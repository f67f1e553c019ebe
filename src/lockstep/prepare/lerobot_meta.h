// The folder meta/ of a LeRobot data set: what its columns and tasks are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct LerobotMeta {
  // Columns of the cameras: the workspace's, and the wrist's unless it was left
  // out.
  std::vector<std::string> cameras = {};
  std::string action = {};
  std::map<int64_t, std::string> tasks = {};  // By task_index.
  // What meta/episodes.jsonl says of each episode_index; empty without it.
  struct Listed {
    std::string sentence = {};  // Empty unless the episode has one task.
    std::optional<int64_t> num_frames = {};
  };
  std::map<int64_t, Listed> episodes = {};
};

// `cameras` are names of columns, with or without "observation.images."; none:
// image and wrist_image, or those that look like them. Throws ConfigError for
// other kinds and versions of data sets, FormatError for damaged files.
LerobotMeta read_lerobot_meta(const std::filesystem::path& folder,
                              const std::vector<std::string>& cameras);

}  // namespace lockstep

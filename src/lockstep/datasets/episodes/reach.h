// The built-in task `builtin:reach`: episodes drawn by code, without files.
//
// Three coloured discs lie on a table, and a gripper (a grey cross, larger when
// it is higher) moves to the one that the sentence names. The action follows
// from the images and the sentence:
//   x, y     from the gripper to the target, right and down, over 0.7 sides
//   z        minus the height, which is 0 to 1
//   roll     0.2 y;  pitch -0.2 x;  yaw 0.1 (x - y)
//   gripper  +1 (close) on the target's disc, -1 (open) else
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/data/image.h"
#include "lockstep/formats/action_csv.h"

namespace lockstep::episodes {

// The N of "builtin:reach:N", 256 for "builtin:reach"; no value for all else.
// Throws ConfigError unless N is at least 1.
std::optional<int64_t> num_reach_episodes(const std::string& data_dir);

struct ReachConfig {
  int64_t num_episodes = 256;
  int64_t num_frames = 8;  // Per episode.
  int image_size = 42;     // Pixels of a side, from 8 on.
  // Sets of other splits or seeds have no episode in common.
  std::string split = "train";
  uint64_t seed = 0;
};

// Episodes and frames are counted from 0. What belongs to a frame depends on
// (seed, split, episode, frame) alone, and is the same on every machine. Not
// changed by use: safe to call from several threads at once.
class ReachTask {
 public:
  // Throws ConfigError for a number that does not fit.
  explicit ReachTask(const ReachConfig& config);

  const ReachConfig& config() const { return config_; }

  std::string sentence(int64_t episode) const;  // "reach the red disc"
  formats::Action action(int64_t episode, int64_t frame) const;
  // RGB.
  data::Image workspace(int64_t episode, int64_t frame) const;
  data::Image wrist(int64_t episode,
                    int64_t frame) const;  // Around the gripper.

 private:
  ReachConfig config_;
};

// All episodes in the local layout, as {data_dir}/{split}/episode_000/... Files
// that are there are an IoError.
void write_reach(const ReachTask& task, const std::filesystem::path& data_dir);

}  // namespace lockstep::episodes

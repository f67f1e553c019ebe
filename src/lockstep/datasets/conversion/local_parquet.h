// The local layout with actions in parquet files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/formats/action_csv.h"

namespace lockstep::conversion {

struct LocalEpisode {
  std::string split = {};
  std::string name = {};
  std::filesystem::path folder = {};
};

// All {input}/{split}/episode_*/, sorted. Throws ConfigError when there are
// none.
std::vector<LocalEpisode> list_local_episodes(
    const std::filesystem::path& input);

// The actions of actions.parquet: columns x, y, z, roll, pitch, yaw, gripper,
// or the first seven. Throws FormatError.
std::vector<formats::Action> read_action_parquet(
    const std::filesystem::path& path);

}  // namespace lockstep::conversion

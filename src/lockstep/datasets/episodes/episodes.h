// Recorded demonstrations in the local layout:
//
//   {data_dir}/{split}/episode_NAME/images/workspace_000.png (.jpg, .jpeg)
//                                          wrist_000.png
//                                   actions.csv
//                                   language_task.txt
//
// Images are numbered from 0 or 1 without gaps, with any number of digits;
// row i of the actions belongs to the i-th image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/data/image.h"
#include "lockstep/formats/action_csv.h"

namespace lockstep::episodes {

// The images of one camera in the order of time. Only names are kept: large
// sets have half a million images.
class EpisodeViews {
 public:
  EpisodeViews() = default;
  EpisodeViews(std::filesystem::path folder, std::vector<std::string> names)
      : folder_(std::move(folder)), names_(std::move(names)) {}

  size_t size() const { return names_.size(); }
  bool empty() const { return names_.empty(); }
  std::filesystem::path operator[](size_t frame) const {
    return folder_ / names_[frame];
  }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> names_;
};

struct Episode {
  std::filesystem::path folder = {};
  std::string name = {};      // The folder's name.
  std::string sentence = {};  // What is done.
  EpisodeViews workspace = {};
  EpisodeViews wrist = {};                    // Empty without use_wrist_camera.
  std::vector<formats::Action> actions = {};  // As many as there are frames.

  size_t num_frames() const { return workspace.size(); }
};

struct EpisodeConfig {
  std::string data_dir = "./dataset";
  std::string split = "train";
  bool use_wrist_camera = true;
  int64_t workers = 0;  // Threads that read; 0: one per core, at most 16.
};

// All episodes of a split, sorted by name (numbers in names by their value).
// Hidden entries and folders that are not named episode_* are ignored. The
// sentence is in language_task.txt, or in metadata.json as "language_task". No
// image is opened.
//
// Throws ConfigError for a folder, split or setting that does not fit,
// FormatError and IoError for an episode that is not whole. Messages name the
// file and what to do, for other data sets the command that converts them.
std::vector<Episode> read_episodes(const EpisodeConfig& config);

// RGB, image_size x image_size pixels, by Pillow's bicubic filter. Throws
// IoError and FormatError with the path.
data::Image load_view(const std::filesystem::path& path, int image_size);

}  // namespace lockstep::episodes

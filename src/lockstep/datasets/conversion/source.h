// Where episodes come from: one class per kind of data set.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/datasets/conversion/child_pool.h"
#include "lockstep/datasets/conversion/episode_writer.h"

namespace lockstep::conversion {

// An episode that could not be converted, and why.
struct Rejection {
  std::string name;
  std::string reason;
};

// The episodes of a data set. Listed when it is opened, read one by one.
class EpisodeSource {
 public:
  virtual ~EpisodeSource() = default;

  // Names of the folders to be made, "episode_..." each, no two alike in a
  // split.
  virtual const std::vector<std::string>& names() const = 0;

  // What was found and cannot be read as a whole.
  virtual const std::vector<Rejection>& rejected() const = 0;

  // Where the data set itself puts an episode; no value: it has no splits.
  virtual std::optional<std::string> split(size_t /*episode*/) const {
    return std::nullopt;
  }

  // Episodes of one group are best read one after the other, in their order:
  // they lie in one file. Empty: it belongs to no group.
  virtual std::string group(size_t /*episode*/) const { return ""; }

  // Hands all of an episode to the writer. Called in child processes, by one
  // thread: files may stay open from call to call. Throws FormatError for what
  // is wrong with the episode, and lets the writer's IoError pass.
  virtual void read(size_t episode, EpisodeWriter& writer) = 0;

  // What the user should know about all of it; empty: nothing.
  virtual std::string note() const { return ""; }
};

struct SourceConfig {
  std::filesystem::path input = {};
  ChildLimits limits = {};   // For the processes that read files.
  int64_t num_children = 1;  // How many of them list files at a time.
  // Names of the workspace's and the wrist's camera in the data set; only the
  // first: episodes without a wrist view; none: the usual names.
  std::vector<std::string> cameras = {};
  // Flip images in HDF5 files upside down.
  bool flip = false;
  // How far the time of a video's frame may be from that of its row, in
  // seconds.
  double tolerance = 1e-4;
};

// LIBERO's and robomimic's HDF5 demonstrations; a file or a folder of files.
std::unique_ptr<EpisodeSource> open_libero(const SourceConfig& config);

// A folder of LeRobot 2.x or 3.x, with images in parquet files or as videos.
std::unique_ptr<EpisodeSource> open_lerobot(const SourceConfig& config);

// The local layout with its actions as parquet.
std::unique_ptr<EpisodeSource> open_local_parquet(const SourceConfig& config);

// All of them throw ConfigError: for an input that is of another kind, and with
// what to install when the library that reads it was not there when this
// program was built.

}  // namespace lockstep::conversion

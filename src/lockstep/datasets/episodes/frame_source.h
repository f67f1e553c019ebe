// Where the frames of episodes come from: files, or the built-in task.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/image.h"
#include "lockstep/datasets/episodes/episodes.h"
#include "lockstep/formats/action_csv.h"

namespace lockstep::episodes {

enum class Camera { kWorkspace, kWrist };

// Safe to use from several threads at once.
class FrameSource {
 public:
  virtual ~FrameSource() = default;

  virtual int64_t num_episodes() const = 0;
  virtual int64_t num_frames(int64_t episode) const = 0;
  virtual std::string sentence(int64_t episode) const = 0;
  virtual formats::Action action(int64_t episode, int64_t frame) const = 0;
  // RGB, as large as asked for. Throws IoError and FormatError.
  virtual data::Image image(int64_t episode, int64_t frame,
                            Camera camera) const = 0;
  // Changes with the images of an episode: their names, sizes and times, or
  // what they are drawn from.
  virtual std::string fingerprint(int64_t episode) const = 0;
};

struct FrameConfig {
  // A folder of splits, or builtin:reach[:N].
  std::string data_dir = "./dataset";
  std::string train_split = "train";
  // Unset: the split "val" where there is one, else val_fraction of the
  // episodes to train on. Empty: none.
  std::optional<std::string> val_split = {};
  double val_fraction = 0.1;
  bool use_wrist_camera = true;
  int image_size = 518;
};

struct FrameSources {
  std::shared_ptr<const FrameSource> train = {};
  std::shared_ptr<const FrameSource> validation = {};  // Null: none.
};

// Throws as read_episodes().
FrameSources open_frames(const FrameConfig& config);

}  // namespace lockstep::episodes

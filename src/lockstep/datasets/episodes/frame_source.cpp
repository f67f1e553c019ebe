#include "lockstep/datasets/episodes/frame_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "lockstep/datasets/episodes/reach.h"
#include "lockstep/error.h"
#include "lockstep/formats/sha256.h"

namespace lockstep::episodes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualValSplit = "val";
constexpr int64_t kReachToValidate = 4;  // One in four.

// Identifies an image file without reading it.
std::string file_facts(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  const auto time = fs::last_write_time(path, error);
  return fmt::format("{} {} {}\n", path.filename().string(), size,
                     time.time_since_epoch().count());
}

class EpisodeFiles final : public FrameSource {
 public:
  EpisodeFiles(std::vector<Episode> episodes, int image_size)
      : episodes_(std::move(episodes)), image_size_(image_size) {}

  int64_t num_episodes() const override { return std::ssize(episodes_); }
  int64_t num_frames(int64_t episode) const override {
    return static_cast<int64_t>(at(episode).num_frames());
  }
  std::string sentence(int64_t episode) const override {
    return at(episode).sentence;
  }
  formats::Action action(int64_t episode, int64_t frame) const override {
    return at(episode).actions[static_cast<size_t>(frame)];
  }
  data::Image image(int64_t episode, int64_t frame,
                    Camera camera) const override {
    return load_view(views(episode, camera)[static_cast<size_t>(frame)],
                     image_size_);
  }
  std::string fingerprint(int64_t episode) const override {
    formats::Sha256 digest;
    digest.add(at(episode).name + "\n");
    for (const Camera camera : {Camera::kWorkspace, Camera::kWrist}) {
      const EpisodeViews& own = views(episode, camera);
      for (size_t i = 0; i < own.size(); ++i) digest.add(file_facts(own[i]));
    }
    return digest.hex();
  }

 private:
  const Episode& at(int64_t episode) const {
    return episodes_[static_cast<size_t>(episode)];
  }
  const EpisodeViews& views(int64_t episode, Camera camera) const {
    return camera == Camera::kWorkspace ? at(episode).workspace
                                        : at(episode).wrist;
  }

  std::vector<Episode> episodes_;
  int image_size_;
};

class ReachFrames final : public FrameSource {
 public:
  explicit ReachFrames(const ReachConfig& config) : task_(config) {}

  int64_t num_episodes() const override { return task_.config().num_episodes; }
  int64_t num_frames(int64_t /*episode*/) const override {
    return task_.config().num_frames;
  }
  std::string sentence(int64_t episode) const override {
    return task_.sentence(episode);
  }
  formats::Action action(int64_t episode, int64_t frame) const override {
    return task_.action(episode, frame);
  }
  data::Image image(int64_t episode, int64_t frame,
                    Camera camera) const override {
    return camera == Camera::kWorkspace ? task_.workspace(episode, frame)
                                        : task_.wrist(episode, frame);
  }
  std::string fingerprint(int64_t episode) const override {
    const ReachConfig& config = task_.config();
    return formats::sha256_of(
        fmt::format("builtin:reach {} {} {} {} {}", config.split, config.seed,
                    config.num_frames, config.image_size, episode));
  }

 private:
  ReachTask task_;
};

FrameSources open_reach(int64_t num_episodes, const FrameConfig& config) {
  ReachConfig reach{.num_episodes = num_episodes,
                    .image_size = config.image_size,
                    .split = config.train_split};
  FrameSources sources{.train = std::make_shared<ReachFrames>(reach)};
  if (config.val_split.value_or(kUsualValSplit).empty()) return sources;
  reach.split = config.val_split.value_or(kUsualValSplit);
  reach.num_episodes = std::max<int64_t>(1, num_episodes / kReachToValidate);
  sources.validation = std::make_shared<ReachFrames>(reach);
  return sources;
}

// The same for an episode whatever others there are.
bool is_held_back(const Episode& episode, double fraction) {
  const std::string digits = formats::sha256_of(episode.name).substr(0, 8);
  uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return static_cast<double>(number) < fraction * 4294967296.0;
}

std::shared_ptr<const FrameSource> make_source(std::vector<Episode> episodes,
                                               const FrameConfig& config) {
  return std::make_shared<EpisodeFiles>(std::move(episodes), config.image_size);
}

FrameSources open_files(const FrameConfig& config) {
  EpisodeConfig of_split{.data_dir = config.data_dir,
                         .split = config.train_split,
                         .use_wrist_camera = config.use_wrist_camera};
  std::vector<Episode> train = read_episodes(of_split);
  FrameSources sources;
  const bool has_val_folder =
      fs::is_directory(fs::path(config.data_dir) / kUsualValSplit) &&
      config.train_split != kUsualValSplit;
  if (config.val_split || has_val_folder) {
    of_split.split = config.val_split.value_or(kUsualValSplit);
    if (!of_split.split.empty()) {
      sources.validation = make_source(read_episodes(of_split), config);
    }
  } else if (config.val_fraction > 0) {
    std::vector<Episode> held_back;
    std::ranges::copy_if(train, std::back_inserter(held_back),
                         [&](const Episode& episode) {
                           return is_held_back(episode, config.val_fraction);
                         });
    // With few episodes none or all may be chosen.
    if (!held_back.empty() && held_back.size() < train.size()) {
      std::erase_if(train, [&](const Episode& episode) {
        return is_held_back(episode, config.val_fraction);
      });
      sources.validation = make_source(std::move(held_back), config);
    }
  }
  sources.train = make_source(std::move(train), config);
  return sources;
}

}  // namespace

FrameSources open_frames(const FrameConfig& config) {
  if (const auto num_episodes = num_reach_episodes(config.data_dir)) {
    return open_reach(*num_episodes, config);
  }
  return open_files(config);
}

}  // namespace lockstep::episodes

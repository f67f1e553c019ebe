#include "lockstep/datasets/episodes/reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/new_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/datasets/drawing.h"
#include "lockstep/error.h"
#include "lockstep/random.h"

namespace lockstep::episodes {
namespace {

constexpr std::string_view kReachName = "builtin:reach";
constexpr size_t kNumDiscs = 3;
constexpr double kDiscRadius = 0.11;  // Lengths are parts of the table's side.
constexpr double kReach = 0.7;        // A distance that is an action of 1.

struct DiscKind {
  const char* name;
  datasets::Colour colour;
};

constexpr std::array<DiscKind, kNumDiscs> kDiscs = {{
    {"red", {215, 40, 40}},
    {"green", {40, 170, 60}},
    {"blue", {45, 75, 215}},
}};
constexpr datasets::Colour kTable = {205, 200, 185};
constexpr datasets::Colour kGripper = {95, 95, 95};

struct TablePoint {
  double x = 0;
  double y = 0;
};

struct ReachScene {
  std::array<TablePoint, kNumDiscs> discs = {};
  size_t target = 0;
  TablePoint gripper = {};
  double height = 0;
  uint64_t noise_seed = 0;
};

// The part of the table that an image shows.
struct Window {
  TablePoint centre = {.x = 0.5, .y = 0.5};
  double half_side = 0.5;
};

uint64_t episode_seed(const ReachConfig& config, int64_t episode) {
  uint64_t split = 0;
  for (const char letter : config.split) {
    split = mix_bits(split + static_cast<unsigned char>(letter) + 1);
  }
  return sample_seed(config.seed ^ split, 0, episode);
}

// As it is before the first frame.
ReachScene draw_start(uint64_t seed) {
  RandomStream random(seed);
  ReachScene scene;
  // Each in its own quarter of the table: discs never overlap.
  std::array<int, 4> quarters = {0, 1, 2, 3};
  random.shuffle(quarters);
  for (size_t i = 0; i < kNumDiscs; ++i) {
    scene.discs[i].x = (quarters[i] % 2 == 0 ? 0.29 : 0.71);
    scene.discs[i].y = (quarters[i] / 2 == 0 ? 0.29 : 0.71);
    scene.discs[i].x += datasets::draw_between(random, -0.1, 0.1);
    scene.discs[i].y += datasets::draw_between(random, -0.1, 0.1);
  }
  scene.target = static_cast<size_t>(random.integer(kNumDiscs));
  scene.gripper.x = datasets::draw_between(random, 0.15, 0.85);
  scene.gripper.y = datasets::draw_between(random, 0.15, 0.85);
  scene.height = datasets::draw_between(random, 0.4, 0.9);
  return scene;
}

ReachScene scene_at(const ReachConfig& config, int64_t episode, int64_t frame) {
  LOCKSTEP_CHECK(episode >= 0 && episode < config.num_episodes && frame >= 0 &&
                     frame < config.num_frames,
                 "there is no such frame");
  const uint64_t seed = episode_seed(config, episode);
  ReachScene scene = draw_start(seed);
  double left = 1;  // Fraction of the way.
  for (int64_t i = 0; i < frame; ++i) left *= 0.75;
  const TablePoint target = scene.discs[scene.target];
  RandomStream random(seed, static_cast<uint64_t>(frame) + 1);
  scene.gripper.x = target.x + (scene.gripper.x - target.x) * left +
                    datasets::draw_between(random, -0.03, 0.03);
  scene.gripper.y = target.y + (scene.gripper.y - target.y) * left +
                    datasets::draw_between(random, -0.03, 0.03);
  scene.height = scene.height * left + datasets::draw_between(random, 0, 0.1);
  scene.noise_seed = mix_bits(seed + static_cast<uint64_t>(frame));
  return scene;
}

double distance(TablePoint a, TablePoint b) {
  return std::sqrt((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y));
}

// The fraction of a pixel inside a shape, by the signed distance to its edge in
// pixels.
double pixel_coverage(double pixels_inside) {
  return std::clamp(pixels_inside + 0.5, 0.0, 1.0);
}

void paint_over(datasets::Colour& below, const datasets::Colour& colour,
                double part) {
  for (size_t i = 0; i < 3; ++i) below[i] += part * (colour[i] - below[i]);
}

datasets::Colour table_colour_at(const ReachScene& scene, TablePoint at,
                                 double pixels_per_side) {
  datasets::Colour colour = kTable;
  for (size_t i = 0; i < kNumDiscs; ++i) {
    const double inside = kDiscRadius - distance(at, scene.discs[i]);
    paint_over(colour, kDiscs[i].colour,
               pixel_coverage(inside * pixels_per_side));
  }
  constexpr double kHalfWidth = 0.035;
  const double arm = 0.05 + 0.08 * scene.height;
  const double x = std::abs(at.x - scene.gripper.x);
  const double y = std::abs(at.y - scene.gripper.y);
  const double across = std::min(arm - x, kHalfWidth - y);
  const double upright = std::min(kHalfWidth - x, arm - y);
  paint_over(colour, kGripper,
             pixel_coverage(std::max(across, upright) * pixels_per_side));
  return colour;
}

data::Image paint_table(const ReachScene& scene, const Window& window,
                        int size) {
  constexpr double kNoise = 6.0 / 255;  // Levels to either side, per byte.
  data::Image image = data::make_image(size, size, 3);
  const double side = 2 * window.half_side;
  uint8_t* to = image.pixels.data();
  uint64_t pixel = 0;
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x < size; ++x, ++pixel) {
      const TablePoint at{
          .x = window.centre.x - window.half_side + side * (x + 0.5) / size,
          .y = window.centre.y - window.half_side + side * (y + 0.5) / size};
      const uint64_t noise = mix_bits(scene.noise_seed + pixel);
      const datasets::Colour colour = table_colour_at(scene, at, size / side);
      for (size_t i = 0; i < 3; ++i) {
        const auto byte = static_cast<double>((noise >> (8 * i)) & 255U);
        const double level = colour[i] + kNoise * (2 * byte - 255);
        *to++ = static_cast<uint8_t>(std::clamp(level, 0.0, 255.0));
      }
    }
  }
  return image;
}

void write_episode(const ReachTask& task, int64_t episode,
                   const std::filesystem::path& folder) {
  base::make_output_folder(folder / "images");
  std::vector<formats::Action> actions;
  for (int64_t frame = 0; frame < task.config().num_frames; ++frame) {
    const auto write = [&](const char* camera, const data::Image& image) {
      base::write_new_file(
          folder / "images" / fmt::format("{}_{:03}.png", camera, frame),
          data::encode_png(image));
    };
    write("workspace", task.workspace(episode, frame));
    write("wrist", task.wrist(episode, frame));
    actions.push_back(task.action(episode, frame));
  }
  base::write_new_file(folder / "actions.csv",
                       formats::action_csv_text(actions));
  base::write_new_file(folder / "language_task.txt",
                       task.sentence(episode) + "\n");
}

}  // namespace

std::optional<int64_t> num_reach_episodes(const std::string& data_dir) {
  if (!data_dir.starts_with(kReachName)) return std::nullopt;
  const std::string_view rest =
      std::string_view(data_dir).substr(kReachName.size());
  if (rest.empty()) return ReachConfig{}.num_episodes;
  const auto number =
      rest.front() == ':' ? base::parse_integer(rest.substr(1)) : std::nullopt;
  if (!number || *number < 1) {
    throw ConfigError(
        fmt::format("data_dir '{}': the built-in episodes are builtin:reach, "
                    "or builtin:reach:N for N of them",
                    data_dir));
  }
  return number;
}

ReachTask::ReachTask(const ReachConfig& config) : config_(config) {
  if (config.num_episodes < 1 || config.num_frames < 1 ||
      config.image_size < 8) {
    throw ConfigError(fmt::format(
        "{} with {} episodes of {} frames of {} pixels: there must be at least "
        "1 of 1 of 8",
        kReachName, config.num_episodes, config.num_frames, config.image_size));
  }
}

std::string ReachTask::sentence(int64_t episode) const {
  const ReachScene scene = scene_at(config_, episode, 0);
  return fmt::format("reach the {} disc", kDiscs[scene.target].name);
}

formats::Action ReachTask::action(int64_t episode, int64_t frame) const {
  const ReachScene scene = scene_at(config_, episode, frame);
  const TablePoint target = scene.discs[scene.target];
  const double x = (target.x - scene.gripper.x) / kReach;
  const double y = (target.y - scene.gripper.y) / kReach;
  const bool is_near = distance(target, scene.gripper) < kDiscRadius;
  const std::array<double, formats::kActionSize> exact = {
      x, y, -scene.height, 0.2 * y, -0.2 * x, 0.1 * (x - y), is_near ? 1. : -1};
  formats::Action action{};
  for (size_t i = 0; i < formats::kActionSize; ++i) {
    action[i] = static_cast<float>(exact[i]);
  }
  return action;
}

data::Image ReachTask::workspace(int64_t episode, int64_t frame) const {
  return paint_table(scene_at(config_, episode, frame), {}, config_.image_size);
}

data::Image ReachTask::wrist(int64_t episode, int64_t frame) const {
  ReachScene scene = scene_at(config_, episode, frame);
  scene.noise_seed = mix_bits(scene.noise_seed);  // Another camera's.
  return paint_table(scene, {.centre = scene.gripper, .half_side = 0.25},
                     config_.image_size);
}

void write_reach(const ReachTask& task, const std::filesystem::path& data_dir) {
  for (int64_t i = 0; i < task.config().num_episodes; ++i) {
    write_episode(
        task, i,
        data_dir / task.config().split / fmt::format("episode_{:03}", i));
  }
}

}  // namespace lockstep::episodes

#include "lockstep/datasets/episodes/episodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/utf8.h"
#include "lockstep/base/workers.h"
#include "lockstep/data/image_ops.h"
#include "lockstep/datasets/episodes/foreign_sets.h"
#include "lockstep/error.h"

namespace lockstep::episodes {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEpisodePrefix = "episode_";

// Names in a folder that are not hidden, sorted.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  try {
    for (const auto& entry : fs::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      if (!name.starts_with('.')) names.push_back(std::move(name));
    }
  } catch (const fs::filesystem_error& problem) {
    throw IoError(fmt::format("cannot read folder '{}': {}", folder.string(),
                              problem.code().message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> episode_names(const fs::path& folder) {
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names, [&](const std::string& name) {
    return !name.starts_with(kEpisodePrefix) || !base::is_folder(folder / name);
  });
  return names;
}

// What to do instead of naming this folder and split.
std::string advice(const EpisodeConfig& config) {
  const fs::path folder = config.data_dir;
  if (const auto command = conversion_command(folder)) {
    return fmt::format(
        "it is a data set of another kind; this command converts it to "
        "episodes:\n  {}",
        *command);
  }
  if (!episode_names(folder).empty()) {
    return fmt::format(
        "it holds episodes itself; move them to '{}', or name the folder above",
        (folder / config.split).string());
  }
  std::vector<std::string> splits;
  for (const std::string& name : names_in(folder)) {
    if (base::is_folder(folder / name) &&
        !episode_names(folder / name).empty()) {
      splits.push_back(name);
    }
  }
  if (splits.empty()) {
    return fmt::format(
        "episodes lie in {}/{}/episode_*/, and data_dir: builtin:reach needs "
        "no files",
        config.data_dir, config.split);
  }
  return fmt::format("it has {}; set train_split and val_split to one of them",
                     base::join(splits, ", "));
}

fs::path find_split(const EpisodeConfig& config) {
  const fs::path folder = config.data_dir;
  if (!base::is_folder(folder)) {
    throw ConfigError(fmt::format(
        "data_dir '{}' is not a folder; it holds {}/episode_*/ (data_dir: "
        "builtin:reach needs no files)",
        config.data_dir, config.split));
  }
  const fs::path split = folder / config.split;
  if (config.split.empty() || !base::is_folder(split)) {
    throw ConfigError(fmt::format("data_dir '{}' has no split '{}': {}",
                                  config.data_dir, config.split,
                                  advice(config)));
  }
  return split;
}

// "workspace" and 12 of "workspace_0012.png"; no value for other names.
struct ViewName {
  std::string camera;
  int64_t number = 0;
};

std::optional<ViewName> view_name(const std::string& name) {
  std::string ending = fs::path(name).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32)
                                          : letter;
  });
  if (ending != ".png" && ending != ".jpg" && ending != ".jpeg") {
    return std::nullopt;
  }
  const std::string stem = fs::path(name).stem().string();
  const size_t line = stem.rfind('_');
  if (line == std::string::npos) return std::nullopt;
  const std::string_view digits = std::string_view(stem).substr(line + 1);
  const auto number = base::parse_integer(digits);
  if (!number || digits.find_first_not_of("0123456789") != digits.npos) {
    return std::nullopt;
  }
  return ViewName{.camera = stem.substr(0, line), .number = *number};
}

using NumberedNames = std::map<int64_t, std::string>;

void check_numbers(const NumberedNames& names, const fs::path& folder) {
  const int64_t first = names.begin()->first;
  if (first > 1) {
    throw FormatError(fmt::format(
        "'{}' is the first image of its camera; images are numbered from 0 "
        "or 1, without gaps",
        (folder / names.begin()->second).string()));
  }
  int64_t expected = first;
  for (const auto& [number, name] : names) {
    if (number != expected) {
      throw FormatError(fmt::format(
          "'{}': the image with number {} before '{}' is missing; copy the "
          "episode again, or remove it",
          folder.string(), expected, name));
    }
    ++expected;
  }
}

EpisodeViews in_order(const NumberedNames& numbered, const fs::path& folder) {
  std::vector<std::string> names;
  names.reserve(numbered.size());
  for (const auto& [number, name] : numbered) names.push_back(name);
  return {folder, std::move(names)};
}

void read_views(const EpisodeConfig& config, Episode& episode) {
  const fs::path folder = episode.folder / "images";
  if (!base::is_folder(folder)) {
    throw FormatError(fmt::format(
        "'{}' is missing; it holds workspace_000.png, wrist_000.png, ...",
        folder.string()));
  }
  std::map<std::string, NumberedNames> cameras;
  for (const std::string& name : names_in(folder)) {
    const auto parts = view_name(name);
    if (!parts) continue;
    const auto [other, is_new] =
        cameras[parts->camera].try_emplace(parts->number, name);
    if (is_new) continue;
    throw FormatError(
        fmt::format("'{}' holds '{}' and '{}', both with number {}; remove one",
                    folder.string(), other->second, name, parts->number));
  }
  const NumberedNames& workspace = cameras["workspace"];
  if (workspace.empty()) {
    throw FormatError(
        fmt::format("'{}' has no frames: there is no workspace_000.png (or "
                    ".jpg) in it",
                    folder.string()));
  }
  check_numbers(workspace, folder);
  episode.workspace = in_order(workspace, folder);
  if (!config.use_wrist_camera) return;
  const NumberedNames& wrist = cameras["wrist"];
  if (wrist.empty()) {
    throw ConfigError(
        fmt::format("'{}' has no images of the wrist camera (wrist_000.png); "
                    "set use_wrist_camera: false to train without",
                    folder.string()));
  }
  check_numbers(wrist, folder);
  if (wrist.size() != workspace.size() ||
      wrist.begin()->first != workspace.begin()->first) {
    throw FormatError(fmt::format(
        "'{}' has {} workspace images from number {} on and {} wrist "
        "images from number {} on; there must be one of each per frame (or "
        "set use_wrist_camera: false)",
        folder.string(), workspace.size(), workspace.begin()->first,
        wrist.size(), wrist.begin()->first));
  }
  episode.wrist = in_order(wrist, folder);
}

void read_actions(const EpisodeConfig& config, Episode& episode) {
  const fs::path csv = episode.folder / "actions.csv";
  if (!base::path_exists(csv)) {
    if (base::path_exists(episode.folder / "actions.parquet")) {
      throw ConfigError(fmt::format(
          "'{}' has its actions as parquet only; this command writes them as "
          "csv beside it:\n  {}",
          episode.folder.string(),
          prepare_command_text({.from = "parquet",
                                .input = config.data_dir,
                                .output = config.data_dir})));
    }
    throw FormatError(
        fmt::format("'{}' is missing; it holds one line x,y,z,roll,pitch,yaw,"
                    "gripper per frame below a header",
                    csv.string()));
  }
  const std::string where = fmt::format("'{}'", csv.string());
  episode.actions = formats::parse_action_csv(base::read_file(csv), where);
  if (episode.actions.size() < episode.num_frames()) {
    throw FormatError(
        fmt::format("{} has {} actions for {} frames; every image needs one",
                    where, episode.actions.size(), episode.num_frames()));
  }
  episode.actions.resize(episode.num_frames());
}

std::string checked_sentence(std::string_view text, const fs::path& file) {
  const std::string sentence(base::trim(text));
  if (sentence.empty()) {
    throw FormatError(fmt::format(
        "'{}' is empty; write into it, as a sentence, what the episode shows",
        file.string()));
  }
  if (!base::is_utf8(sentence)) {
    throw FormatError(fmt::format("'{}' is not UTF-8 text", file.string()));
  }
  return sentence;
}

std::string read_sentence(const fs::path& folder) {
  const fs::path file = folder / "language_task.txt";
  if (base::path_exists(file))
    return checked_sentence(base::read_file(file), file);
  const fs::path metadata = folder / "metadata.json";
  if (base::path_exists(metadata)) {
    const auto json = nlohmann::json::parse(base::read_file(metadata), nullptr,
                                            /*allow_exceptions=*/false);
    if (json.is_discarded()) {
      throw FormatError(fmt::format("'{}' is not JSON", metadata.string()));
    }
    const auto found =
        json.is_object() ? json.find("language_task") : json.end();
    if (json.is_object() && found != json.end() && found->is_string()) {
      return checked_sentence(found->get<std::string>(), metadata);
    }
  }
  throw FormatError(
      fmt::format("episode '{}' has no sentence; write what it shows into '{}'",
                  folder.string(), file.string()));
}

Episode read_episode(const EpisodeConfig& config, const fs::path& folder) {
  Episode episode{.folder = folder, .name = folder.filename().string()};
  read_views(config, episode);
  read_actions(config, episode);
  episode.sentence = read_sentence(folder);
  return episode;
}

}  // namespace

std::vector<Episode> read_episodes(const EpisodeConfig& config) {
  const fs::path split = find_split(config);
  const std::vector<std::string> names = episode_names(split);
  if (names.empty()) {
    throw ConfigError(
        fmt::format("'{}' holds no episode; episodes are folders named "
                    "episode_000 and so on",
                    split.string()));
  }
  std::vector<Episode> episodes(names.size());
  base::run_workers(std::ssize(names), config.workers, [&](int64_t index) {
    const auto i = static_cast<size_t>(index);
    episodes[i] = read_episode(config, split / names[i]);
  });
  return episodes;
}

data::Image load_view(const fs::path& path, int image_size) {
  return data::resize(data::read_image(path),
                      {.width = image_size, .height = image_size},
                      data::Filter::kBicubic);
}

}  // namespace lockstep::episodes

#include "lockstep/datasets/conversion/lerobot_meta.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::conversion {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kPrefix = "observation.images.";

Json parse_json(const std::string& text, const std::string& where) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    throw FormatError(fmt::format("{} is not a JSON object", where));
  }
  return json;
}

std::vector<Json> read_json_lines(const fs::path& path) {
  std::vector<Json> rows;
  const std::vector<std::string> lines =
      base::split(base::read_file(path), '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (base::trim(lines[i]).empty()) continue;
    rows.push_back(parse_json(
        lines[i], fmt::format("'{}', line {},", path.string(), i + 1)));
  }
  return rows;
}

// A value of a kind; no value for all else.
template <typename T>
std::optional<T> value_of(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end()) return std::nullopt;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) return std::nullopt;
  } else if (!found->is_number_integer()) {
    return std::nullopt;
  }
  return found->get<T>();
}

int64_t checked_version(const Json& info, const fs::path& path) {
  const std::string version =
      value_of<std::string>(info, "codebase_version").value_or("v2.0");
  if (version.starts_with("v2.")) return 2;
  if (version.starts_with("v3.")) return 3;
  throw ConfigError(fmt::format(
      "'{}' is of version {}; data sets of versions 2.x and 3.x can be read",
      path.string(), version));
}

struct Features {
  std::vector<std::string> names = {};
  std::vector<std::string> images = {};  // Images and videos.
  std::vector<std::string> videos = {};
};

Features features_of(const Json& info) {
  Features features;
  const auto found = info.find("features");
  if (found == info.end() || !found->is_object()) return features;
  for (const auto& [name, feature] : found->items()) {
    features.names.push_back(name);
    if (!feature.is_object()) continue;
    const auto kind = value_of<std::string>(feature, "dtype");
    if (kind == "image" || kind == "video") features.images.push_back(name);
    if (kind == "video") features.videos.push_back(name);
  }
  return features;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void refuse_camera(const Features& features,
                                const std::string& why) {
  throw ConfigError(fmt::format(
      "{}; its images are {}. Name the cameras by --cameras "
      "WORKSPACE,WRIST, or --cameras WORKSPACE alone",
      why,
      features.images.empty() ? "none" : base::join(features.images, ", ")));
}

// Without --cameras.
std::vector<std::string> usual_cameras(const Features& features) {
  std::vector<std::string> workspace;
  std::vector<std::string> wrist;
  for (const std::string& name : features.images) {
    const bool is_wrist = name.find("wrist") != std::string::npos ||
                          name.find("eye_in_hand") != std::string::npos;
    (is_wrist ? wrist : workspace).push_back(name);
  }
  if (contains(workspace, "image")) workspace = {"image"};
  if (workspace.size() != 1 || wrist.size() != 1) {
    refuse_camera(features,
                  "which image is the workspace's and which the wrist's is "
                  "not clear");
  }
  return {workspace[0], wrist[0]};
}

std::vector<std::string> named_cameras(const Features& features,
                                       const std::vector<std::string>& names) {
  std::vector<std::string> columns;
  for (const std::string& name : names) {
    const bool is_there = contains(features.images, name);
    const std::string column = is_there ? name : kPrefix + name;
    if (!contains(features.images, column)) {
      refuse_camera(features, fmt::format("there is no camera '{}'", name));
    }
    columns.push_back(column);
  }
  return columns;
}

std::string action_column(const Features& features, const fs::path& info) {
  for (const char* name : {"actions", "action"}) {
    if (contains(features.names, name)) return name;
  }
  throw ConfigError(fmt::format(
      "'{}' describes neither a column 'actions' nor 'action', but {}",
      info.string(), base::join(features.names, ", ")));
}

void read_task_lines(const fs::path& path, LerobotMeta& meta) {
  std::error_code problem;
  if (!fs::exists(path, problem)) return;
  for (const Json& row : read_json_lines(path)) {
    const auto index = value_of<int64_t>(row, "task_index");
    const auto task = value_of<std::string>(row, "task");
    if (index && task) meta.tasks[*index] = *task;
  }
}

void read_listed(const fs::path& path, LerobotMeta& meta) {
  std::error_code problem;
  if (!fs::exists(path, problem)) return;
  for (const Json& row : read_json_lines(path)) {
    const auto index = value_of<int64_t>(row, "episode_index");
    if (!index) continue;
    LerobotMeta::Listed& listed = meta.episodes[*index];
    listed.num_frames = value_of<int64_t>(row, "length");
    const auto tasks = row.find("tasks");
    if (tasks != row.end() && tasks->is_array() && tasks->size() == 1 &&
        tasks->front().is_string()) {
      listed.sentence = tasks->front().get<std::string>();
    }
  }
}

// Where files are, unless meta/info.json names it.
void read_paths(const Json& info, LerobotMeta& meta) {
  const bool is_2 = meta.version == 2;
  meta.data_path = value_of<std::string>(info, "data_path")
                       .value_or(
                           "data/chunk-{chunk_index:03d}/file-{file_index:03d}"
                           ".parquet");
  meta.video_path =
      value_of<std::string>(info, "video_path")
          .value_or(is_2 ? "videos/chunk-{episode_chunk:03d}/{video_key}/"
                           "episode_{episode_index:06d}.mp4"
                         : "videos/{video_key}/chunk-{chunk_index:03d}/"
                           "file-{file_index:03d}.mp4");
  meta.chunk_size = std::max<int64_t>(
      1, value_of<int64_t>(info, "chunks_size").value_or(meta.chunk_size));
}

}  // namespace

LerobotMeta read_lerobot_meta(const fs::path& folder,
                              const std::vector<std::string>& cameras) {
  const fs::path info_path = folder / "meta" / "info.json";
  std::error_code problem;
  if (!fs::exists(info_path, problem)) {
    throw ConfigError(fmt::format(
        "--input '{}' holds no meta/info.json; it is the folder of a LeRobot "
        "data set",
        folder.string()));
  }
  const Json info = parse_json(base::read_file(info_path),
                               fmt::format("'{}'", info_path.string()));
  LerobotMeta meta;
  meta.version = checked_version(info, info_path);
  const Features features = features_of(info);
  const auto columns = cameras.empty() ? usual_cameras(features)
                                       : named_cameras(features, cameras);
  for (const std::string& column : columns) {
    meta.cameras.push_back(
        {.column = column, .is_video = contains(features.videos, column)});
  }
  meta.action = action_column(features, info_path);
  read_paths(info, meta);
  if (meta.version > 2) return meta;
  read_task_lines(folder / "meta" / "tasks.jsonl", meta);
  read_listed(folder / "meta" / "episodes.jsonl", meta);
  return meta;
}

}  // namespace lockstep::conversion

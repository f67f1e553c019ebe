#include "lockstep/datasets/conversion/lerobot_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/datasets/conversion/parquet_file.h"
#include "lockstep/error.h"

namespace lockstep::conversion {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// All .parquet files below a folder, sorted.
std::vector<fs::path> parquet_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code problem;
  for (fs::recursive_directory_iterator entry(folder, problem), end;
       !problem && entry != end; entry.increment(problem)) {
    if (entry->path().extension() == ".parquet") {
      files.push_back(entry->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// An index; doubles hold all that can be.
int64_t whole(double number) {
  constexpr double kMost = 1e15;
  if (!(number >= 0 && number < kMost)) {
    throw FormatError(fmt::format(
        "meta/: {} is not the index of a task, episode or file", number));
  }
  return static_cast<int64_t>(number);
}

double finite(double number) {
  if (!std::isfinite(number)) {
    throw FormatError("meta/episodes: a timestamp is not a finite number");
  }
  return number;
}

// The other column is the index of a pandas table; its name varies.
std::string text_column(const ParquetFile& file) {
  for (const std::string& name : file.columns()) {
    if (name != "task_index") return name;
  }
  throw FormatError("meta/tasks.parquet has no column with sentences");
}

Json read_task_table(const fs::path& path) {
  const ParquetFile file(path);
  const std::vector<double> indices = file.numbers("task_index");
  const std::vector<std::string> texts = file.texts(text_column(file));
  Json tasks = Json::array();
  for (size_t i = 0; i < std::min(indices.size(), texts.size()); ++i) {
    tasks.push_back({whole(indices[i]), texts[i]});
  }
  return tasks;
}

// One table of episodes, column by column.
class EpisodeTable {
 public:
  EpisodeTable(const fs::path& path,
               const std::vector<LerobotMeta::Camera>& cameras)
      : file_(path),
        numbers_(file_.numbers("episode_index")),
        lengths_(file_.numbers("length")),
        chunks_(file_.numbers("data/chunk_index")),
        files_(file_.numbers("data/file_index")),
        tasks_(file_.text_lists("tasks")) {
    for (const LerobotMeta::Camera& camera : cameras) {
      if (!camera.is_video) continue;
      const std::string prefix = "videos/" + camera.column + "/";
      videos_.push_back({.chunks = file_.numbers(prefix + "chunk_index"),
                         .files = file_.numbers(prefix + "file_index"),
                         .begins = file_.numbers(prefix + "from_timestamp")});
    }
  }

  void add_rows(Json& episodes) const {
    for (size_t i = 0; i < numbers_.size(); ++i) {
      Json videos = Json::array();
      for (const Videos& video : videos_) {
        videos.push_back({whole(video.chunks.at(i)), whole(video.files.at(i)),
                          finite(video.begins.at(i))});
      }
      const auto& tasks = tasks_.at(i);
      episodes.push_back({{"number", whole(numbers_[i])},
                          {"frames", whole(lengths_.at(i))},
                          {"chunk", whole(chunks_.at(i))},
                          {"file", whole(files_.at(i))},
                          {"task", tasks.size() == 1 ? tasks.front() : ""},
                          {"videos", videos}});
    }
  }

 private:
  struct Videos {
    std::vector<double> chunks = {};
    std::vector<double> files = {};
    std::vector<double> begins = {};
  };

  ParquetFile file_;
  std::vector<double> numbers_;
  std::vector<double> lengths_;
  std::vector<double> chunks_;
  std::vector<double> files_;
  std::vector<std::vector<std::string>> tasks_;
  std::vector<Videos> videos_;
};

std::string tables_as_json(const fs::path& folder,
                           const std::vector<LerobotMeta::Camera>& cameras) {
  Json tables = {{"tasks", Json::array()}, {"episodes", Json::array()}};
  const fs::path tasks = folder / "meta" / "tasks.parquet";
  std::error_code problem;
  if (fs::exists(tasks, problem)) tables["tasks"] = read_task_table(tasks);
  for (const fs::path& path : parquet_files(folder / "meta" / "episodes")) {
    EpisodeTable(path, cameras).add_rows(tables["episodes"]);
  }
  return tables.dump(-1, ' ', false, Json::error_handler_t::replace);
}

LerobotMeta::Listed listed(const Json& row) {
  LerobotMeta::Listed episode = {.sentence = row.at("task").get<std::string>(),
                                 .num_frames = row.at("frames").get<int64_t>(),
                                 .chunk = row.at("chunk").get<int64_t>(),
                                 .file = row.at("file").get<int64_t>()};
  for (const Json& video : row.at("videos")) {
    episode.videos.push_back({.chunk = video.at(0).get<int64_t>(),
                              .file = video.at(1).get<int64_t>(),
                              .begin = video.at(2).get<double>()});
  }
  return episode;
}

}  // namespace

void read_lerobot_tables(const fs::path& folder, const ChildLimits& limits,
                         LerobotMeta& meta) {
  const std::string text = text_from_child(
      [&] { return tables_as_json(folder, meta.cameras); }, limits);
  try {
    const Json tables = Json::parse(text);
    for (const Json& task : tables.at("tasks")) {
      meta.tasks[task.at(0).get<int64_t>()] = task.at(1).get<std::string>();
    }
    for (const Json& row : tables.at("episodes")) {
      meta.episodes[row.at("number").get<int64_t>()] = listed(row);
    }
  } catch (const Json::exception&) {
    throw FormatError(fmt::format("'{}': its tables are damaged",
                                  (folder / "meta").string()));
  }
  if (meta.episodes.empty()) {
    throw ConfigError(fmt::format(
        "--input '{}' holds no meta/episodes/chunk-000/file-000.parquet or the "
        "like; download the data set whole",
        folder.string()));
  }
}

}  // namespace lockstep::conversion

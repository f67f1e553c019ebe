#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "lockstep/base/strings.h"
#include "lockstep/datasets/conversion/lerobot_meta.h"
#include "lockstep/datasets/conversion/lerobot_path.h"
#include "lockstep/datasets/conversion/lerobot_tables.h"
#include "lockstep/datasets/conversion/parquet_file.h"
#include "lockstep/datasets/conversion/source.h"
#include "lockstep/datasets/conversion/video_file.h"
#include "lockstep/error.h"
#include "lockstep/formats/png.h"

namespace lockstep::conversion {
namespace {

namespace fs = std::filesystem;
using Rows = ParquetFile::Rows;

// Where an episode is.
struct Episode {
  int64_t number = 0;
  fs::path data = {};
  // For cameras stored as videos.
  struct Video {
    fs::path path = {};
    double begin = 0;
  };
  std::vector<Video> videos = {};
};

// A file of rows, and its columns that are needed for all episodes in it.
struct DataFile {
  fs::path path;
  ParquetFile file;
  std::vector<double> episodes = {};  // Empty when the file is one episode.
  std::vector<double> times = {};     // Empty without videos.
  std::vector<double> tasks = {};     // Empty when the file has none.
  std::vector<formats::Action> actions = {};

  DataFile(const fs::path& the_path, const LerobotMeta& meta)
      : path(the_path), file(the_path) {
    const auto& columns = file.columns();
    const auto has = [&](const char* name) {
      return std::find(columns.begin(), columns.end(), name) != columns.end();
    };
    if (meta.version > 2) episodes = file.numbers("episode_index");
    if (has("task_index")) tasks = file.numbers("task_index");
    const bool has_video =
        std::any_of(meta.cameras.begin(), meta.cameras.end(),
                    [](const auto& camera) { return camera.is_video; });
    if (has_video) times = file.numbers("timestamp");
    actions = file.actions(meta.action);
    const size_t num_rows = file.num_rows();
    if (actions.size() != num_rows ||
        (meta.version > 2 && episodes.size() != num_rows) ||
        (has_video && times.size() != num_rows) ||
        (has("task_index") && tasks.size() != num_rows)) {
      throw FormatError(fmt::format(
          "'{}' is damaged: its columns differ in length", path.string()));
    }
  }

  Rows rows_of(int64_t episode) const {
    if (episodes.empty()) return {.first = 0, .count = file.num_rows()};
    const auto number = static_cast<double>(episode);
    const auto first = std::find(episodes.begin(), episodes.end(), number);
    const auto end = std::find_if(
        first, episodes.end(), [&](double other) { return other != number; });
    return {.first = static_cast<size_t>(first - episodes.begin()),
            .count = static_cast<size_t>(end - first)};
  }
};

// data/chunk-000/episode_000012.parquet and the like, by episode.
std::map<int64_t, fs::path> find_files(const fs::path& input) {
  std::map<int64_t, fs::path> files;
  std::error_code problem;
  for (fs::recursive_directory_iterator entry(input / "data", problem), end;
       !problem && entry != end; entry.increment(problem)) {
    const std::string stem = entry->path().stem().string();
    constexpr std::string_view kPrefix = "episode_";
    if (entry->path().extension() != ".parquet") continue;
    if (!stem.starts_with(kPrefix)) continue;
    const auto number = base::parse_integer(stem.substr(kPrefix.size()));
    if (number && *number >= 0) files.emplace(*number, entry->path());
  }
  return files;
}

std::string name_of(int64_t episode) {
  return fmt::format("episode_{:06}", episode);
}

class LerobotSource final : public EpisodeSource {
 public:
  explicit LerobotSource(const SourceConfig& config)
      : config_(config),
        meta_(read_lerobot_meta(config.input, config.cameras)) {
    if (meta_.version > 2) {
      read_lerobot_tables(config.input, config.limits, meta_);
      list_parts();
    } else {
      list_files();
    }
    for (const Episode& episode : episodes_) {
      names_.push_back(name_of(episode.number));
    }
  }

  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<Rejection>& rejected() const override { return rejected_; }

  std::string group(size_t episode) const override {
    const Episode& one = episodes_.at(episode);
    if (meta_.version == 2) return "";
    return one.videos.empty() ? one.data.string() : one.videos[0].path.string();
  }

  void read(size_t episode, EpisodeWriter& writer) override {
    const Episode& source = episodes_.at(episode);
    DataFile& data = open_data(source.data);
    const Rows rows = data.rows_of(source.number);
    check_length(source, data, rows);
    writer.set_sentence(sentence_of(source, data, rows));
    writer.set_actions(std::span(data.actions).subspan(rows.first, rows.count));
    copy_images(data, rows, writer);
    copy_videos(source, data, rows, writer);
  }

 private:
  static EpisodeCamera camera_at(size_t index) {
    return index == 0 ? EpisodeCamera::kWorkspace : EpisodeCamera::kWrist;
  }

  // 2.x: a file per episode.
  void list_files() {
    const auto files = find_files(config_.input);
    if (files.empty()) {
      throw ConfigError(fmt::format(
          "--input '{}' holds no data/chunk-000/episode_000000.parquet or the "
          "like; download the data set whole",
          config_.input.string()));
    }
    for (const auto& [number, path] : files) {
      Episode episode{.number = number, .data = path};
      for (const LerobotMeta::Camera& camera : meta_.cameras) {
        if (!camera.is_video) continue;
        episode.videos.push_back(
            {.path = config_.input /
                     lerobot_path(meta_.video_path,
                                  {{"episode_chunk", number / meta_.chunk_size},
                                   {"episode_index", number},
                                   {"video_key", camera.column}})});
      }
      episodes_.push_back(std::move(episode));
    }
    for (const auto& [number, listed] : meta_.episodes) {
      if (files.contains(number)) continue;
      rejected_.push_back(
          {.name = name_of(number),
           .reason = "is listed in meta/episodes.jsonl, but has no file"});
    }
  }

  // 3.x: parts of files.
  void list_parts() {
    for (const auto& [number, listed] : meta_.episodes) {
      Episode episode{
          .number = number,
          .data = config_.input /
                  lerobot_path(meta_.data_path, {{"chunk_index", listed.chunk},
                                                 {"file_index", listed.file}})};
      size_t next = 0;
      for (const LerobotMeta::Camera& camera : meta_.cameras) {
        if (!camera.is_video) continue;
        const LerobotMeta::Video& video = listed.videos.at(next++);
        episode.videos.push_back(
            {.path =
                 config_.input /
                 lerobot_path(meta_.video_path, {{"chunk_index", video.chunk},
                                                 {"file_index", video.file},
                                                 {"video_key", camera.column}}),
             .begin = video.begin});
      }
      episodes_.push_back(std::move(episode));
    }
  }

  static void check_exists(const fs::path& path) {
    std::error_code problem;
    if (fs::is_regular_file(path, problem)) return;
    throw FormatError(fmt::format(
        "there is no file '{}'; download the data set whole", path.string()));
  }

  DataFile& open_data(const fs::path& path) {
    if (data_ && data_->path == path) return *data_;
    data_.reset();
    check_exists(path);
    data_ = std::make_unique<DataFile>(path, meta_);
    return *data_;
  }

  VideoFile& open_video(size_t camera, const fs::path& path) {
    OpenVideo& open = videos_.at(camera);
    if (open.file && open.path == path) return *open.file;
    open = {};
    check_exists(path);
    open = {.path = path, .file = std::make_unique<VideoFile>(path)};
    return *open.file;
  }

  void check_length(const Episode& source, const DataFile& data,
                    const Rows& rows) const {
    const auto listed = meta_.episodes.find(source.number);
    if (listed == meta_.episodes.end() || !listed->second.num_frames) return;
    if (*listed->second.num_frames == static_cast<int64_t>(rows.count)) return;
    throw FormatError(
        fmt::format("'{}' has {} rows, {} are listed in meta/episodes{}",
                    data.path.string(), rows.count, *listed->second.num_frames,
                    meta_.version == 2 ? ".jsonl" : ""));
  }

  // The task of its rows; without one, the task in the list.
  std::string sentence_of(const Episode& source, const DataFile& data,
                          const Rows& rows) const {
    if (!data.tasks.empty() && rows.count > 0) {
      const auto tasks = std::span(data.tasks).subspan(rows.first, rows.count);
      if (std::adjacent_find(tasks.begin(), tasks.end(),
                             std::not_equal_to<>()) != tasks.end()) {
        throw FormatError("its task changes on the way; one episode has one");
      }
      // False for NaN as well.
      if (tasks[0] >= 0 && tasks[0] < 1e9) {
        const auto found = meta_.tasks.find(static_cast<int64_t>(tasks[0]));
        if (found != meta_.tasks.end()) return found->second;
      }
    }
    const auto listed = meta_.episodes.find(source.number);
    if (listed != meta_.episodes.end() && !listed->second.sentence.empty()) {
      return listed->second.sentence;
    }
    throw FormatError(
        "no sentence: neither meta/tasks nor meta/episodes has its task");
  }

  void copy_images(DataFile& data, const Rows& rows,
                   EpisodeWriter& writer) const {
    std::vector<std::string> columns;
    std::vector<EpisodeCamera> cameras;
    for (size_t i = 0; i < meta_.cameras.size(); ++i) {
      if (meta_.cameras[i].is_video) continue;
      columns.push_back(meta_.cameras[i].column);
      cameras.push_back(camera_at(i));
    }
    if (columns.empty()) return;
    data.file.images(columns, rows, [&](size_t column, std::string_view bytes) {
      writer.add_image(cameras[column], bytes);
    });
  }

  void copy_videos(const Episode& source, const DataFile& data,
                   const Rows& rows, EpisodeWriter& writer) {
    size_t next = 0;
    for (size_t i = 0; i < meta_.cameras.size(); ++i) {
      if (!meta_.cameras[i].is_video) continue;
      const Episode::Video& video = source.videos.at(next++);
      const std::vector<double> times = times_in(video, data, rows);
      open_video(i, video.path)
          .frames(
              {.times = times, .tolerance = config_.tolerance},
              [&](const VideoFrame& frame) {
                writer.add_image(camera_at(i),
                                 formats::encode_png(formats::PngPixels{
                                     .width = frame.width,
                                     .height = frame.height,
                                     .channels = 3,
                                     .pixels = frame.pixels}));
              },
              [&] { writer.show_progress(); });
    }
  }

  // When the frames of an episode are shown in its file.
  static std::vector<double> times_in(const Episode::Video& video,
                                      const DataFile& data, const Rows& rows) {
    constexpr double kMost = 1e7;
    std::vector<double> times;
    for (size_t row = 0; row < rows.count; ++row) {
      const double time = video.begin + data.times.at(rows.first + row);
      const double last = times.empty() ? 0 : times.back();
      if (!(time >= last && time < kMost)) {
        throw FormatError(fmt::format(
            "its timestamps are damaged: {} s follows {} s", time, last));
      }
      times.push_back(time);
    }
    return times;
  }

  struct OpenVideo {
    fs::path path = {};
    std::unique_ptr<VideoFile> file = {};
  };

  SourceConfig config_;
  LerobotMeta meta_;
  std::vector<Episode> episodes_;
  std::vector<std::string> names_;
  std::vector<Rejection> rejected_;
  // In a child: the files of the last episode.
  std::unique_ptr<DataFile> data_;
  std::array<OpenVideo, 2> videos_;
};

}  // namespace

std::unique_ptr<EpisodeSource> open_lerobot(const SourceConfig& config) {
  return std::make_unique<LerobotSource>(config);
}

}  // namespace lockstep::conversion

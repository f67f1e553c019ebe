#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/prepare/lerobot_meta.h"
#include "lockstep/prepare/parquet_file.h"
#include "lockstep/prepare/source.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

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
    const auto number = parse_integer(stem.substr(kPrefix.size()));
    if (number && *number >= 0) files.emplace(*number, entry->path());
  }
  return files;
}

class LerobotSource final : public EpisodeSource {
 public:
  explicit LerobotSource(const SourceConfig& config)
      : meta_(read_lerobot_meta(config.input, config.cameras)) {
    const auto files = find_files(config.input);
    if (files.empty()) {
      throw ConfigError(fmt::format(
          "--input '{}' holds no data/chunk-000/episode_000000.parquet or the "
          "like; download the data set whole",
          config.input.string()));
    }
    for (const auto& [number, path] : files) {
      files_.push_back({.number = number, .path = path});
      names_.push_back(fmt::format("episode_{:06}", number));
    }
    for (const auto& [number, listed] : meta_.episodes) {
      if (files.contains(number)) continue;
      rejected_.push_back(
          {.name = fmt::format("episode_{:06}", number),
           .reason = "is listed in meta/episodes.jsonl, but has no file"});
    }
  }

  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<Rejection>& rejected() const override { return rejected_; }

  void read(size_t episode, EpisodeWriter& writer) const override {
    const File& source = files_.at(episode);
    const ParquetFile file(source.path);
    const auto listed = meta_.episodes.find(source.number);
    if (listed != meta_.episodes.end() && listed->second.num_frames &&
        *listed->second.num_frames != static_cast<int64_t>(file.num_rows())) {
      throw FormatError(fmt::format(
          "'{}' has {} rows, {} are listed in meta/episodes.jsonl",
          source.path.string(), file.num_rows(), *listed->second.num_frames));
    }
    writer.set_sentence(sentence_of(file, source));
    writer.set_actions(file.actions(meta_.action));
    file.pictures(meta_.cameras, [&](size_t camera, std::string_view bytes) {
      writer.add_picture(camera == 0 ? Camera::kWorkspace : Camera::kWrist,
                         bytes);
    });
  }

 private:
  struct File {
    int64_t number = 0;
    fs::path path = {};
  };

  // The task of its rows; when they do not say one, what is listed.
  std::string sentence_of(const ParquetFile& file, const File& source) const {
    const auto& columns = file.columns();
    if (std::find(columns.begin(), columns.end(), "task_index") !=
        columns.end()) {
      const std::vector<double> tasks = file.numbers("task_index");
      if (std::adjacent_find(tasks.begin(), tasks.end(),
                             std::not_equal_to<>()) != tasks.end()) {
        throw FormatError("its task changes on the way; one episode has one");
      }
      // Not below either when it is no number.
      if (!tasks.empty() && tasks[0] >= 0 && tasks[0] < 1e9) {
        const auto found = meta_.tasks.find(static_cast<int64_t>(tasks[0]));
        if (found != meta_.tasks.end()) return found->second;
      }
    }
    const auto listed = meta_.episodes.find(source.number);
    if (listed != meta_.episodes.end() && !listed->second.sentence.empty()) {
      return listed->second.sentence;
    }
    throw FormatError(
        "no sentence: neither meta/tasks.jsonl nor meta/episodes.jsonl has its "
        "task");
  }

  LerobotMeta meta_;
  std::vector<File> files_;
  std::vector<std::string> names_;
  std::vector<Rejection> rejected_;
};

}  // namespace

std::unique_ptr<EpisodeSource> open_lerobot(const SourceConfig& config) {
  return std::make_unique<LerobotSource>(config);
}

}  // namespace lockstep

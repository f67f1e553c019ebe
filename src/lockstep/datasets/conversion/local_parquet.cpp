#include "lockstep/datasets/conversion/local_parquet.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/datasets/conversion/parquet_file.h"
#include "lockstep/datasets/conversion/source.h"
#include "lockstep/error.h"

namespace lockstep::conversion {
namespace {

namespace fs = std::filesystem;

// Sorted; hidden ones are left out.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end;
       !problem && entry != end; entry.increment(problem)) {
    if (!entry->path().filename().string().starts_with('.')) {
      paths.push_back(entry->path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string sentence_in(const fs::path& folder) {
  if (const auto text = base::try_read_file(folder / "language_task.txt")) {
    return *text;
  }
  const auto text = base::try_read_file(folder / "metadata.json").value_or("");
  const auto json = nlohmann::json::parse(text, nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("language_task") ||
      !json["language_task"].is_string()) {
    throw FormatError(
        fmt::format("no sentence; write what the episode shows into '{}'",
                    (folder / "language_task.txt").string()));
  }
  return json["language_task"].get<std::string>();
}

std::vector<formats::Action> actions_in(const fs::path& folder) {
  const fs::path parquet = folder / "actions.parquet";
  std::error_code problem;
  if (fs::exists(parquet, problem)) return read_action_parquet(parquet);
  const fs::path csv = folder / "actions.csv";
  const auto text = base::try_read_file(csv);
  if (!text) throw FormatError("there is no actions.parquet");
  return formats::parse_action_csv(*text, fmt::format("'{}'", csv.string()));
}

class LocalParquetSource final : public EpisodeSource {
 public:
  explicit LocalParquetSource(const SourceConfig& config)
      : episodes_(list_local_episodes(config.input)) {
    for (const LocalEpisode& episode : episodes_) {
      names_.push_back(episode.name);
    }
  }

  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<Rejection>& rejected() const override { return rejected_; }
  std::optional<std::string> split(size_t episode) const override {
    return episodes_.at(episode).split;
  }

  void read(size_t episode, EpisodeWriter& writer) override {
    const fs::path& folder = episodes_.at(episode).folder;
    writer.set_sentence(sentence_in(folder));
    writer.set_actions(actions_in(folder));
    for (const fs::path& file : entries_of(folder / "images")) {
      const std::string name = file.filename().string();
      if (name.starts_with("workspace_")) {
        writer.copy_image(EpisodeCamera::kWorkspace, file);
      } else if (name.starts_with("wrist_")) {
        writer.copy_image(EpisodeCamera::kWrist, file);
      }
    }
  }

 private:
  std::vector<LocalEpisode> episodes_;
  std::vector<std::string> names_;
  std::vector<Rejection> rejected_;
};

}  // namespace

std::vector<LocalEpisode> list_local_episodes(const fs::path& input) {
  std::vector<LocalEpisode> episodes;
  for (const fs::path& split : entries_of(input)) {
    for (const fs::path& folder : entries_of(split)) {
      const std::string name = folder.filename().string();
      if (!name.starts_with("episode_") || !base::is_folder(folder)) continue;
      episodes.push_back(
          {.split = split.filename().string(), .name = name, .folder = folder});
    }
  }
  if (episodes.empty()) {
    throw ConfigError(fmt::format(
        "--input '{}' holds no train/episode_000/actions.parquet or the like",
        input.string()));
  }
  return episodes;
}

std::vector<formats::Action> read_action_parquet(const fs::path& path) {
  const ParquetFile file(path);
  const std::vector<std::string>& names = file.columns();
  const auto columns =
      formats::action_columns(names, fmt::format("'{}'", path.string()));
  std::vector<formats::Action> actions(file.num_rows());
  for (size_t i = 0; i < formats::kActionSize; ++i) {
    const std::vector<double> numbers = file.numbers(names[columns[i]]);
    if (numbers.size() != actions.size()) {
      throw FormatError(
          fmt::format("'{}' is damaged: a column has {} rows of {}",
                      path.string(), numbers.size(), actions.size()));
    }
    for (size_t row = 0; row < actions.size(); ++row) {
      actions[row][i] = static_cast<float>(numbers[row]);
    }
  }
  return actions;
}

std::unique_ptr<EpisodeSource> open_local_parquet(const SourceConfig& config) {
  return std::make_unique<LocalParquetSource>(config);
}

}  // namespace lockstep::conversion

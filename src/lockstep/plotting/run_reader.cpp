#include "lockstep/plotting/run_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "lockstep/track/curve_collector.h"
#include "lockstep/track/metrics_file.h"

namespace lockstep::plotting {
namespace {

namespace fs = std::filesystem;

void check_run_folder(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw ConfigError(fmt::format(
        "{}: there is no such folder; name the --save_dir of a training",
        folder.string()));
  }
  if (!fs::exists(folder / "metrics.jsonl", ignored)) {
    throw ConfigError(fmt::format(
        "{} has no metrics.jsonl: name the --save_dir of a training",
        folder.string()));
  }
}

void add_value(std::vector<plot::NamedSeries>& all, const std::string& name,
               double step, double value) {
  auto found = std::find_if(
      all.begin(), all.end(),
      [&](const plot::NamedSeries& one) { return one.name == name; });
  if (found == all.end()) found = all.insert(all.end(), {.name = name});
  found->series.add(step, value);
}

// The number behind "step" in a name; -1: none.
int64_t step_of(const std::string& name) {
  constexpr size_t kMostDigits = 18;
  size_t at = name.find("step");
  if (at == std::string::npos) return -1;
  at += 4;
  size_t end = at;
  while (end < name.size() && end - at < kMostDigits &&
         std::isdigit(static_cast<unsigned char>(name[end])) != 0) {
    ++end;
  }
  return end == at ? -1 : std::stoll(name.substr(at, end - at));
}

// Null when it is not a grid, or damaged.
std::optional<formats::ReadGrid> try_read_grid(const fs::path& path) {
  const auto bytes = base::try_read_file(path);
  if (!bytes) return std::nullopt;
  try {
    return formats::read_image_grid(*bytes);
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

}  // namespace

ReadRun read_run(const fs::path& folder) {
  check_run_folder(folder);
  ReadRun run{.folder = folder};
  track::CurveCollector curves(folder.string(), {});
  track::read_metrics(
      folder / "metrics.jsonl", [&](const track::Record& record) {
        curves.add(record);
        for (const auto& [name, value] : record.metrics) {
          add_value(run.metrics, name, static_cast<double>(record.step), value);
        }
      });
  if (run.metrics.empty()) {
    throw ConfigError(fmt::format(
        "{} holds no metrics yet: the first are written after --log_every "
        "steps",
        (folder / "metrics.jsonl").string()));
  }
  run.curves = curves.curves();
  return run;
}

std::optional<formats::ReadGrid> newest_samples(const fs::path& folder) {
  std::vector<std::pair<int64_t, fs::path>> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / "images", ignored)) {
    if (entry.path().extension() != ".png") continue;
    files.emplace_back(step_of(entry.path().filename().string()), entry.path());
  }
  std::sort(files.rbegin(), files.rend());
  for (const auto& [step, path] : files) {
    if (auto grid = try_read_grid(path)) return grid;
  }
  return std::nullopt;
}

}  // namespace lockstep::plotting

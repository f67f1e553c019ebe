#include "lockstep/datasets/conversion/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/strings.h"
#include "lockstep/config/one_page_command.h"
#include "lockstep/datasets/conversion/conversion.h"
#include "lockstep/datasets/conversion/source.h"
#include "lockstep/error.h"
#include "lockstep/options.h"

namespace lockstep::conversion {
namespace {

namespace fs = std::filesystem;

// More than any chunk of a data set takes; less than a machine has.
constexpr size_t kChildMemory = size_t{4} << 30U;

struct PrepareConfig {
  std::optional<std::string> from = {};
  std::string input = {};
  std::string output = {};
  std::vector<std::string> cameras = {};
  bool flip = false;
  double tolerance = SourceConfig{}.tolerance;
  double timeout = 60;
  ConversionConfig conversion = {};
};

void describe(Options& options, PrepareConfig& config) {
  ConversionConfig& conversion = config.conversion;
  options.add("from", config.from,
              "What the input is: LIBERO's HDF5 files, a LeRobot 2.x or 3.x "
              "folder, or the local layout with actions.parquet.",
              {.choices = {"libero", "lerobot", "parquet"},
               .shown_default = "seen from the input"});
  options.add("input", config.input, "The data set: a folder, or one file.");
  options.add("output", config.output,
              "Folder for the episodes, data_dir of a training.");
  options.add("split", conversion.split, "Episodes go to OUTPUT/SPLIT.");
  options.add("val_fraction", conversion.val_fraction,
              "Part of them that goes to OUTPUT/val instead, chosen by name.",
              {.minimum = 0, .maximum = 1});
  options.add("cameras", config.cameras,
              "Names of the workspace's and the wrist's camera in the input; "
              "one name: no wrist view.",
              {.shown_default = "agentview,eye_in_hand or image,wrist_image"});
  options.add("flip", config.flip,
              "Turns LIBERO's images, which are stored upside down.");
  options.add("tolerance_s", config.tolerance,
              "How far a LeRobot video's frame may be from the timestamp of "
              "its row, in seconds.",
              {.minimum = 0});
  options.add("workers", conversion.workers,
              "Processes; 0: one per processor, at most 16.",
              {.minimum = 0, .maximum = 1024});
  options.add("timeout", config.timeout,
              "Seconds without progress after which a file cannot be read.",
              {.minimum = 0.1, .maximum = 1e6});
  options.add("overwrite", conversion.overwrite,
              "Makes episodes anew that are there.");
}

std::string ending_of(const fs::path& path) {
  return path.extension().string();
}

// Whether a file with this ending lies in the folder, at most `depth` below.
bool holds_file(const fs::path& folder, const std::string& name, int depth) {
  std::error_code problem;
  for (fs::recursive_directory_iterator entry(folder, problem), end;
       !problem && entry != end; entry.increment(problem)) {
    if (entry.depth() >= depth) entry.disable_recursion_pending();
    const fs::path& path = entry->path();
    if (path.filename() == name || ending_of(path) == name) return true;
  }
  return false;
}

std::string guess_kind(const fs::path& input) {
  std::error_code problem;
  if (!fs::exists(input, problem)) {
    throw ConfigError(
        fmt::format("--input '{}' does not exist", input.string()));
  }
  if (fs::exists(input / "meta" / "info.json", problem)) return "lerobot";
  if (fs::is_regular_file(input, problem) || holds_file(input, ".hdf5", 2) ||
      holds_file(input, ".h5", 2)) {
    return "libero";
  }
  if (holds_file(input, "actions.parquet", 2)) return "parquet";
  throw ConfigError(fmt::format(
      "--input '{}' holds neither .hdf5 files, nor meta/info.json, nor "
      "train/episode_*/actions.parquet; name its kind by --from",
      input.string()));
}

void check_flags(const Options& options, const PrepareConfig& config,
                 const std::string& kind) {
  for (const char* name : {"input", "output"}) {
    if (!options.was_given(name)) {
      throw ConfigError(fmt::format(
          "--{} is missing: lockstep prepare atlas --input PATH --output DIR",
          name));
    }
  }
  const auto refuse_for = [&](const char* flag) {
    if (!options.was_given(flag)) return;
    throw ConfigError(
        fmt::format("--{} does not go with --from {}", flag, kind));
  };
  if (kind == "parquet") {
    // Its episodes have a split and two cameras already.
    for (const char* flag : {"split", "val_fraction", "cameras"}) {
      refuse_for(flag);
    }
  }
  if (kind != "libero") refuse_for("flip");
  if (kind != "lerobot") refuse_for("tolerance_s");
  if (config.cameras.size() > 2) {
    throw ConfigError("--cameras takes one or two names");
  }
  const std::string& split = config.conversion.split;
  if (split.empty() || split.starts_with('.') ||
      split.find('/') != std::string::npos) {
    throw ConfigError(fmt::format("--split '{}' is not a folder name", split));
  }
}

bool is_same_folder(const fs::path& a, const fs::path& b) {
  std::error_code problem;
  return fs::equivalent(a, b, problem);
}

ConversionCounts convert(const PrepareConfig& config, const std::string& kind,
                         const base::ShowProgress& progress,
                         std::string& note) {
  const bool is_in_place = is_same_folder(config.input, config.output);
  if (kind == "parquet" && is_in_place) {
    return convert_in_place(config.conversion, progress);
  }
  const SourceConfig source_config{
      .input = config.input,
      .limits = config.conversion.limits,
      .num_children =
          base::num_workers(/*num_items=*/16, config.conversion.workers),
      .cameras = config.cameras,
      .flip = config.flip,
      .tolerance = config.tolerance};
  std::unique_ptr<EpisodeSource> source;
  if (kind == "libero") source = open_libero(source_config);
  if (kind == "lerobot") source = open_lerobot(source_config);
  if (kind == "parquet") source = open_local_parquet(source_config);
  note = source->note();
  return convert_episodes(*source, config.conversion, progress);
}

// Lists the rejected episodes; removes an old list when there are none.
void write_rejected(const fs::path& file,
                    const std::vector<Rejection>& rejected) {
  if (rejected.empty()) {
    std::error_code ignored;
    fs::remove(file, ignored);
    return;
  }
  std::string text;
  for (const Rejection& one : rejected) {
    text += one.name + "\t" + base::replace_all(one.reason, "\n", " ") + "\n";
  }
  base::write_file_atomically(file, text);
}

std::string summary(const ConversionCounts& counts, const fs::path& output,
                    double seconds) {
  std::string text = fmt::format(
      "Made {} episodes in {}; {} were there already (--overwrite makes them "
      "anew); {} could not be read.\n",
      counts.num_made, base::duration_text(seconds), counts.num_kept,
      counts.rejected.size());
  for (const auto& [split, count] : counts.in_split) {
    text +=
        fmt::format("  {}: {} episodes\n", (output / split).string(), count);
  }
  constexpr size_t kMostShown = 5;
  const size_t num_shown = std::min(kMostShown, counts.rejected.size());
  for (size_t i = 0; i < num_shown; ++i) {
    text += fmt::format("Left out: {}: {}\n", counts.rejected[i].name,
                        counts.rejected[i].reason);
  }
  if (!counts.rejected.empty()) {
    text += fmt::format("All that was left out, with reasons: {}\n",
                        (output / "rejected.txt").string());
  }
  return text;
}

}  // namespace

Prepared prepare_atlas(const std::vector<std::string>& arguments,
                       const base::ShowProgress& progress) {
  PrepareConfig config;
  Options options;
  describe(options, config);
  if (auto text = config::parse_one_page_command(
          options, arguments,
          "lockstep prepare atlas --input PATH --output DIR [flags]")) {
    return {.text = *text};
  }
  const std::string kind = config.from || config.input.empty()
                               ? config.from.value_or("")
                               : guess_kind(config.input);
  check_flags(options, config, kind);
  const fs::path output = config.output;
  config.conversion.output = output;
  config.conversion.limits = {
      .memory_bytes = kChildMemory,
      .silence = std::chrono::milliseconds(std::llround(config.timeout * 1e3))};
  std::string note;
  const int64_t begin = base::monotonic_ns();
  const ConversionCounts counts = convert(config, kind, progress, note);
  const double seconds = base::seconds_between(begin, base::monotonic_ns());
  write_rejected(output / "rejected.txt", counts.rejected);
  if (counts.num_made + counts.num_kept == 0) {
    throw FormatError(fmt::format(
        "none of {} episodes could be read; {}: {}", counts.rejected.size(),
        counts.rejected.front().name, counts.rejected.front().reason));
  }
  return {.text = summary(counts, output, seconds) + note,
          .num_rejected = counts.rejected.size()};
}

}  // namespace lockstep::conversion

#include "lockstep/plotting/metric_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::plotting {
namespace {

constexpr size_t kMostPanels = 6;
constexpr int kLastPlace = 5;

// Not compared unless asked for.
constexpr std::array<std::string_view, 12> kSettingsAndCounts = {
    "train/learning_rate", "train/epoch",         "train/epoch_loss",
    "train/loss_scale",    "train/skipped_steps", "perf/tflops",
    "train/grad_norm",     "perf/data_ms",        "perf/compute_ms",
    "perf/exchange_ms",    "perf/other_ms",       "perf/memory_gib"};

constexpr std::array<std::pair<std::string_view, const char*>, 6> kTitles = {
    {{"perf/samples_per_second", "Speed (samples/s)"},
     {"perf/peak_memory_gib", "Peak memory (GiB)"},
     {"perf/memory_gib", "Resident memory (GiB)"},
     {"perf/tflops", "Speed (TFLOP/s)"},
     {"train/learning_rate", "Learning rate"},
     {"train/grad_norm", "Gradient norm"}}};

// Lower ones come first.
int place_of(const std::string& name) {
  if (name == "train/loss") return 0;
  if (name == "val/loss") return 1;
  if (name.starts_with("val/")) return 2;
  if (name.find('/') == std::string::npos) return 3;  // Scores of images.
  return name.starts_with("train/") ? 4 : kLastPlace;
}

std::vector<std::string> names_of(const ReadRun& run) {
  std::vector<std::string> names;
  names.reserve(run.metrics.size());
  for (const plot::NamedSeries& one : run.metrics) names.push_back(one.name);
  return names;
}

void check_asked(const std::vector<ReadRun>& runs,
                 const std::vector<std::string>& asked) {
  std::vector<std::string> known;
  for (const ReadRun& run : runs) {
    for (const std::string& name : names_of(run)) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        known.push_back(name);
      }
    }
  }
  for (const std::string& name : asked) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw ConfigError(fmt::format("--metrics {}: no run has it; they have {}",
                                  name, base::join(known, ", ")));
  }
}

std::string nothing_in_common(const std::vector<ReadRun>& runs) {
  std::string text =
      "these runs have no metric in common; choose some with --metrics:";
  for (const ReadRun& run : runs) {
    text += fmt::format("\n  {}: {}", run.folder.string(),
                        base::join(names_of(run), ", "));
  }
  return text;
}

bool is_compared(const std::string& name, const std::vector<ReadRun>& runs) {
  const auto& left_out = kSettingsAndCounts;
  return std::find(left_out.begin(), left_out.end(), name) == left_out.end() &&
         std::all_of(runs.begin(), runs.end(), [&](const ReadRun& run) {
           return find_series(run, name) != nullptr;
         });
}

}  // namespace

std::vector<std::string> choose_metrics(const std::vector<ReadRun>& runs,
                                        const std::vector<std::string>& asked) {
  if (!asked.empty()) {
    check_asked(runs, asked);
    return asked;
  }
  std::vector<std::string> common;
  const std::vector<std::string> names = names_of(runs.at(0));
  for (int place = 0; place <= kLastPlace; ++place) {
    for (const std::string& name : names) {
      if (place_of(name) == place && is_compared(name, runs)) {
        common.push_back(name);
      }
    }
  }
  if (common.empty()) throw ConfigError(nothing_in_common(runs));
  if (common.size() > kMostPanels) common.resize(kMostPanels);
  return common;
}

std::string metric_title(const std::string& name) {
  for (const auto& [known, title] : kTitles) {
    if (name == known) return title;
  }
  return name;
}

plot::AxisRule metric_axis(const std::string& name) {
  return name.starts_with("perf/") ? plot::AxisRule::kFromZero
                                   : plot::AxisRule::kBySize;
}

const plot::Series* find_series(const ReadRun& run, const std::string& name) {
  for (const plot::NamedSeries& one : run.metrics) {
    if (one.name == name) return &one.series;
  }
  return nullptr;
}

}  // namespace lockstep::plotting

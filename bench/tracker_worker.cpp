// What the trackers cost: the time of a record with 20 metrics, and of drawing
// both plots of a run with a million steps. Prints one JSON line.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/track/csv_file.h"
#include "lockstep/track/metrics_file.h"
#include "lockstep/track/plot_tracker.h"
#include "lockstep/track/tensorboard.h"

namespace {

using lockstep::Record;
using lockstep::Tracker;

constexpr int64_t kRecords = 20'000;
constexpr int kNumMetrics = 20;
constexpr int64_t kPlotSteps = 1'000'000;

Record record_at(int64_t step) {
  const auto x = static_cast<double>(step);
  Record record{.step = step,
                .unix_time = 1.7e9 + x,
                .metrics = {{"train/loss", 2 + std::sin(x)},
                            {"val/loss", 2 + std::cos(x)},
                            {"train/learning_rate", 1e-3 / (1 + 1e-4 * x)},
                            {"perf/samples_per_second", 900 + std::sin(x)},
                            {"train/grad_norm", 1 + std::sin(7 * x) / 2}}};
  for (int i = 5; i < kNumMetrics; ++i) {
    record.metrics.emplace_back(fmt::format("train/metric_{}", i), x / 3 + i);
  }
  return record;
}

double us_per_record(Tracker& tracker) {
  double total = 0;
  for (int64_t step = 1; step <= kRecords; ++step) {
    const Record record = record_at(step);
    const int64_t begin = lockstep::monotonic_ns();
    tracker.record(record);
    total += lockstep::seconds_between(begin, lockstep::monotonic_ns());
  }
  return 1e6 * total / static_cast<double>(kRecords);
}

// The fastest: whatever else runs on the machine only adds to it.
double ms_per_redraw(Tracker& plots) {
  for (int64_t step = kRecords + 1; step <= kPlotSteps; ++step) {
    plots.record(record_at(step));
  }
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 1; i <= 10; ++i) {
    plots.record(record_at(kPlotSteps + i));
    const int64_t begin = lockstep::monotonic_ns();
    plots.finish(0);
    fastest = std::min(
        fastest, lockstep::seconds_between(begin, lockstep::monotonic_ns()));
  }
  return 1e3 * fastest;
}

}  // namespace

int main() {
  const auto folder = lockstep::make_unique_folder(
      std::filesystem::temp_directory_path(), "lockstep-trackers-");
  // Not the file of the others: they begin with what it holds.
  lockstep::MetricsFile lines(folder / "lines.jsonl", {});
  lockstep::CsvFile table(folder / "metrics.csv", folder / "none");
  lockstep::TensorBoardTracker board({.folder = folder / "tensorboard"});
  lockstep::PlotTracker plots(
      {.folder = folder, .title = "bench", .metrics = folder / "none"});
  const std::string line = fmt::format(
      "{{\"metrics_jsonl_us\":{:.2f},\"metrics_csv_us\":{:.2f},"
      "\"tensorboard_us\":{:.2f},\"plot_us\":{:.2f},\"redraw_ms\":{:.1f}}}\n",
      us_per_record(lines), us_per_record(table), us_per_record(board),
      us_per_record(plots), ms_per_redraw(plots));
  std::filesystem::remove_all(folder);
  std::fputs(line.c_str(), stdout);
}

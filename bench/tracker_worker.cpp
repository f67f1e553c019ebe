// What records of 20 metrics cost: a step of the training, which hands them to
// the recorder; each tracker, on the recorder's thread; and drawing both plots
// of a run with a million steps. Prints one JSON line.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/track/csv_file.h"
#include "lockstep/track/metrics_file.h"
#include "lockstep/track/plot_tracker.h"
#include "lockstep/track/recorder.h"
#include "lockstep/track/tensorboard.h"
#include "lockstep/track/wandb_tracker.h"

namespace {

using lockstep::track::Record;
using lockstep::track::Tracker;

constexpr int64_t kRecords = 20'000;
constexpr int kNumMetrics = 20;
constexpr int64_t kPlotSteps = 1'000'000;
constexpr int64_t kSteps = 2'000;
constexpr auto kStepTime = std::chrono::milliseconds(1);

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
    const int64_t begin = lockstep::base::monotonic_ns();
    tracker.record(record);
    total +=
        lockstep::base::seconds_between(begin, lockstep::base::monotonic_ns());
  }
  return 1e6 * total / static_cast<double>(kRecords);
}

// With all trackers behind it, at the pace of a fast training.
double us_per_step(const std::filesystem::path& folder) {
  std::vector<std::unique_ptr<Tracker>> trackers;
  trackers.push_back(std::make_unique<lockstep::track::MetricsFile>(
      folder / "metrics.jsonl", lockstep::track::KeptRecords{}));
  trackers.push_back(std::make_unique<lockstep::track::CsvFile>(
      folder / "metrics.csv", folder / "metrics.jsonl"));
  trackers.push_back(std::make_unique<lockstep::track::TensorBoardTracker>(
      lockstep::track::TensorBoardConfig{.folder = folder}));
  trackers.push_back(std::make_unique<lockstep::track::WandbTracker>(
      lockstep::track::WandbConfig{.project = "bench", .folder = folder},
      std::nullopt));
  lockstep::track::Recorder recorder({}, std::move(trackers));
  std::vector<double> times;
  for (int64_t step = 1; step <= kSteps; ++step) {
    std::this_thread::sleep_for(kStepTime);
    const int64_t begin = lockstep::base::monotonic_ns();
    recorder.record(record_at(step));
    times.push_back(
        lockstep::base::seconds_between(begin, lockstep::base::monotonic_ns()));
  }
  recorder.finish(0);
  std::ranges::nth_element(times, times.begin() + kSteps / 2);
  return 1e6 * times[kSteps / 2];
}

// The fastest: whatever else runs on the machine only adds to it.
double ms_per_redraw(Tracker& plots) {
  for (int64_t step = kRecords + 1; step <= kPlotSteps; ++step) {
    plots.record(record_at(step));
  }
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 1; i <= 10; ++i) {
    plots.record(record_at(kPlotSteps + i));
    const int64_t begin = lockstep::base::monotonic_ns();
    plots.finish(0);
    fastest = std::min(fastest, lockstep::base::seconds_between(
                                    begin, lockstep::base::monotonic_ns()));
  }
  return 1e3 * fastest;
}

}  // namespace

int main() {
  const auto folder = lockstep::base::make_unique_folder(
      std::filesystem::temp_directory_path(), "lockstep-trackers-");
  // Not the file of the others: they begin with what it holds.
  lockstep::track::MetricsFile lines(folder / "lines.jsonl", {});
  lockstep::track::CsvFile table(folder / "metrics.csv", folder / "none");
  lockstep::track::TensorBoardTracker board({.folder = folder / "tensorboard"});
  lockstep::track::WandbTracker wandb({.project = "bench", .folder = folder},
                                      std::nullopt);
  lockstep::track::PlotTracker plots(
      {.folder = folder, .title = "bench", .metrics = folder / "none"});
  const std::string line = fmt::format(
      "{{\"step_us\":{:.2f},\"metrics_jsonl_us\":{:.2f},"
      "\"metrics_csv_us\":{:.2f},\"tensorboard_us\":{:.2f},"
      "\"wandb_us\":{:.2f},\"plot_us\":{:.2f},\"redraw_ms\":{:.1f}}}\n",
      us_per_step(lockstep::base::make_unique_folder(folder, "all-")),
      us_per_record(lines), us_per_record(table), us_per_record(board),
      us_per_record(wandb), us_per_record(plots), ms_per_redraw(plots));
  std::filesystem::remove_all(folder);
  std::fputs(line.c_str(), stdout);
}

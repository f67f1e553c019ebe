#include "lockstep/track/plot_tracker.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/clock.h"
#include "lockstep/plot/raster.h"
#include "lockstep/plot/svg.h"
#include "lockstep/track/metrics_file.h"

namespace lockstep::track {
namespace {

constexpr double kSecondsBetween = 30;
constexpr double kMostOfTheTime = 0.01;

constexpr std::array kCurves = {
    std::pair("train/loss", &plot::RunCurves::train_loss),
    std::pair("val/loss", &plot::RunCurves::validation_loss),
    std::pair("train/learning_rate", &plot::RunCurves::learning_rate),
    std::pair("perf/samples_per_second", &plot::RunCurves::samples_per_second),
    std::pair("train/grad_norm", &plot::RunCurves::gradient_norm)};

}  // namespace

PlotTracker::PlotTracker(const PlotConfig& config)
    : folder_(config.folder), curves_{.title = config.title} {
  read_metrics(config.metrics, [this](const Record& kept) { record(kept); });
}

void PlotTracker::record(const Record& record) {
  for (const auto& [name, value] : record.metrics) {
    for (const auto& [known, curve] : kCurves) {
      if (name != known) continue;
      (curves_.*curve).add(static_cast<double>(record.step), value);
      has_news_ = true;
    }
  }
}

void PlotTracker::tick(double unix_time) {
  // A clock that was set back ends the wait, too.
  const double waited = unix_time - drawn_at_;
  if (!has_news_ || (waited >= 0 && waited < wait_seconds_)) return;
  drawn_at_ = unix_time;
  wait_seconds_ = kSecondsBetween;
  const int64_t begin = base::monotonic_ns();
  draw();
  const double seconds = base::seconds_between(begin, base::monotonic_ns());
  wait_seconds_ = std::max(kSecondsBetween, seconds / kMostOfTheTime);
}

void PlotTracker::finish(int) {
  if (has_news_) draw();
}

void PlotTracker::draw() {
  const plot::Drawing drawing = plot::draw_run(curves_);
  base::write_file_atomically(folder_ / "loss.svg", plot::to_svg(drawing));
  base::write_file_atomically(folder_ / "loss.png", plot::to_png(drawing));
  has_news_ = false;
}

}  // namespace lockstep::track

#include "lockstep/track/plot_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/clock.h"
#include "lockstep/plot/plot.h"
#include "lockstep/plot/raster.h"
#include "lockstep/plot/svg.h"
#include "lockstep/track/metrics_file.h"

namespace lockstep::track {
namespace {

constexpr double kSecondsBetween = 30;
constexpr double kMostOfTheTime = 0.01;

}  // namespace

PlotTracker::PlotTracker(const PlotConfig& config)
    : folder_(config.folder), curves_(config.title, config.best) {
  read_metrics(config.metrics, [this](const Record& kept) { record(kept); });
  const std::string missing = font_.missing(config.title);
  if (!missing.empty() && config.on_warning) {
    config.on_warning(fmt::format(
        "loss.png shows question marks for {}: no font on this machine has "
        "them; apt-get install fonts-noto-cjk has the letters of East Asia "
        "(loss.svg is not affected)",
        missing));
  }
}

void PlotTracker::record(const Record& record) {
  if (curves_.add(record)) has_news_ = true;
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
  const plot::Drawing drawing = plot::draw_run(curves_.curves(), font_);
  base::write_file_atomically(folder_ / "loss.svg", plot::to_svg(drawing));
  base::write_file_atomically(folder_ / "loss.png",
                              plot::to_png(drawing, font_));
  has_news_ = false;
}

}  // namespace lockstep::track

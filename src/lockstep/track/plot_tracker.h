// loss.svg and loss.png: the curves of a run, redrawn while it goes on.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "lockstep/plot/font.h"
#include "lockstep/track/curve_collector.h"
#include "lockstep/track/tracker.h"

namespace lockstep::track {

struct PlotConfig {
  std::filesystem::path folder = {};
  std::string title = {};  // Title of the image.
  // metrics.jsonl, after MetricsFile dropped what goes: the curves begin with
  // what it holds.
  std::filesystem::path metrics = {};
  PlottedMetric best = {};
  // Called by the constructor, at most once: with letters of the title that no
  // font has.
  std::function<void(const std::string&)> on_warning = {};
};

// Draws when something was recorded, at most every 30 s, and never more than 1
// % of the time. Files are replaced atomically.
class PlotTracker : public Tracker {
 public:
  // Throws IoError.
  explicit PlotTracker(const PlotConfig& config);

  std::string name() const override { return "loss.png"; }
  void record(const Record& record) override;
  void tick(double unix_time) override;
  void finish(int exit_code) override;

 private:
  void draw();

  std::filesystem::path folder_;
  CurveCollector curves_;
  plot::Font font_;
  bool has_news_ = false;
  double drawn_at_ = 0;  // Unix time.
  double wait_seconds_ = 0;
};

}  // namespace lockstep::track

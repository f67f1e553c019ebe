#include "lockstep/runs/run_curves.h"

#include <algorithm>

#include "lockstep/runs/run_files.h"

namespace lockstep::runs {
namespace {

constexpr size_t kMostMetrics = 200;

}  // namespace

RunCurves::RunCurves(std::string_view run)
    : file_(joined_path(run, kMetricsFile)) {}

bool RunCurves::update(const FolderTree& tree) {
  return file_.read(
      tree, {.restart = [this] { metrics_.clear(); },
             .lines = [this](std::string_view lines) { add_lines(lines); }});
}

const plot::Series* RunCurves::find(std::string_view name) const {
  for (const plot::NamedSeries& one : metrics_) {
    if (one.name == name) return &one.series;
  }
  return nullptr;
}

void RunCurves::add_lines(std::string_view lines) {
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    if (parser_.parse(lines.substr(0, end))) {
      for (const track::MetricValue& one : parser_.values()) {
        add(one.name, static_cast<double>(parser_.step()), one.value);
      }
    }
    lines.remove_prefix(std::min(lines.size(), end + 1));
  }
}

void RunCurves::add(std::string_view name, double step, double value) {
  if (next_ >= metrics_.size() || metrics_[next_].name != name) {
    const auto found = std::find_if(
        metrics_.begin(), metrics_.end(),
        [&](const plot::NamedSeries& one) { return one.name == name; });
    next_ = static_cast<size_t>(found - metrics_.begin());
    if (found == metrics_.end()) {
      if (metrics_.size() == kMostMetrics) return;
      metrics_.push_back({.name = std::string(name)});
    }
  }
  // Steps of a file that was put together by hand may decrease.
  if (metrics_[next_].series.is_empty() ||
      step >= metrics_[next_].series.last_step()) {
    metrics_[next_].series.add(step, value);
  }
  ++next_;
}

}  // namespace lockstep::runs

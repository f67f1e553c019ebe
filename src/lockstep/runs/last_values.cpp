#include "lockstep/runs/last_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/runs/run_files.h"

namespace lockstep::runs {
namespace {

constexpr size_t kTailBytes = size_t{32} << 10;

bool is_better(double value, double than, plot::Direction better) {
  return better == plot::Direction::kHigher ? value > than : value < than;
}

}  // namespace

LastValues::LastValues(std::string_view run)
    : file_(joined_path(run, kMetricsFile)) {}

bool LastValues::update(const FolderTree& tree,
                        const track::PlottedMetric& best) {
  if (metric_.name.empty()) {
    const bool is_known = best.name.size() > std::strlen("val/");
    metric_ = is_known
                  ? best
                  : track::PlottedMetric{.name = "val/loss",
                                         .better = plot::Direction::kLower};
  }
  const bool has_news = file_.read(
      tree, {.restart = [this] { clear(); },
             .lines = [this](std::string_view lines) { add_lines(lines); }});
  if (has_news) read_tail();
  return has_news;
}

void LastValues::clear() {
  tail_.clear();
  step_.reset();
  loss_.reset();
  speed_.reset();
  best_.reset();
}

// Records of validations are few among those of training: only lines that name
// the metric are parsed.
void LastValues::add_lines(std::string_view lines) {
  tail_ = lines.substr(lines.size() - std::min(lines.size(), kTailBytes));
  const std::string name = "\"" + metric_.name + "\"";
  while (!lines.empty()) {
    const void* found =
        memmem(lines.data(), lines.size(), name.data(), name.size());
    if (found == nullptr) return;
    const auto at =
        static_cast<size_t>(static_cast<const char*>(found) - lines.data());
    const size_t before = lines.rfind('\n', at);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const size_t end = std::min(lines.find('\n', at), lines.size() - 1);
    add_best(lines.substr(begin, end - begin));
    lines.remove_prefix(end + 1);
  }
}

void LastValues::add_best(std::string_view line) {
  if (!parser_.parse(line)) return;
  for (const track::MetricValue& one : parser_.values()) {
    if (one.name != metric_.name || !std::isfinite(one.value)) continue;
    if (!best_ || is_better(one.value, best_->value, metric_.better)) {
      best_ = StepValue{.step = parser_.step(), .value = one.value};
    }
  }
}

// From the end, until the last loss was found.
void LastValues::read_tail() {
  std::string_view lines = tail_;
  std::optional<StepValue> loss;
  bool is_newest = true;
  while (!lines.empty() && !loss) {
    lines.remove_suffix(1);
    const size_t before = lines.rfind('\n');
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    if (parser_.parse(lines.substr(begin))) {
      if (is_newest) step_ = parser_.step();
      is_newest = false;
      for (const track::MetricValue& one : parser_.values()) {
        if (one.name == "train/loss") {
          loss = StepValue{.step = parser_.step(), .value = one.value};
        }
        if (one.name == "perf/samples_per_second") speed_ = one.value;
      }
    }
    lines = lines.substr(0, begin);
  }
  if (loss) loss_ = loss;
}

}  // namespace lockstep::runs

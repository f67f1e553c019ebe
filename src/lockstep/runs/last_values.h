// The newest values of a run and its best one, without reading the records
// between them as numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/runs/growing_file.h"
#include "lockstep/track/curve_collector.h"
#include "lockstep/track/metric_line.h"

namespace lockstep::runs {

struct StepValue {
  int64_t step = 0;
  double value = 0;
};

class LastValues {
 public:
  explicit LastValues(std::string_view run);

  // `best`: the metric that selects the best model; without a name val/loss.
  bool update(const FolderTree& tree, const track::PlottedMetric& best);

  const std::optional<int64_t>& step() const { return step_; }
  const std::optional<StepValue>& loss() const { return loss_; }
  const std::optional<double>& samples_per_second() const { return speed_; }
  const std::optional<StepValue>& best() const { return best_; }
  const std::string& best_name() const { return metric_.name; }
  int64_t modified() const { return file_.modified(); }

 private:
  void clear();
  void add_lines(std::string_view lines);
  void add_best(std::string_view line);
  void read_tail();

  GrowingFile file_;
  track::MetricLineParser parser_;
  track::PlottedMetric metric_ = {};
  std::string tail_ = {};  // Whole lines.
  std::optional<int64_t> step_ = {};
  std::optional<StepValue> loss_ = {};
  std::optional<double> speed_ = {};
  std::optional<StepValue> best_ = {};
};

}  // namespace lockstep::runs

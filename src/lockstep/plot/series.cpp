#include "lockstep/plot/series.h"

#include <algorithm>
#include <cmath>

namespace lockstep::plot {
namespace {

constexpr size_t kMostStretches = 1000;

// Far outside of what a run can mean, and near enough for sums, differences and
// quotients.
constexpr double kLargest = 1e100;
constexpr double kSmallest = 1e-100;

// Every value becomes a mean of all, weighted by decay^distance. Looking both
// ways, it does not lag behind a loss that falls.
void smooth(std::vector<Point>& line, double decay) {
  std::vector<double> sums(line.size());
  std::vector<double> weights(line.size());
  double sum = 0;
  double weight = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    sums[i] = sum = decay * sum + line[i].y;
    weights[i] = weight = decay * weight + 1;
  }
  sum = weight = 0;
  for (size_t i = line.size(); i-- > 0;) {
    const double value = line[i].y;
    line[i].y = (sums[i] + sum) / (weights[i] + weight);
    sum = decay * (sum + value);
    weight = decay * (weight + 1);
  }
}

}  // namespace

void Series::add(double step, double value) {
  if (num_values_++ == 0) first_step_ = step;
  last_step_ = step;
  Stretch one{.first_step = step, .last_step = step, .num_values = 1};
  if (std::abs(value) <= kLargest) {
    const Point point{step, std::abs(value) < kSmallest ? 0 : value};
    one.low = one.high = point;
    one.sum = point.y;
    one.num_finite = 1;
    if (!lowest_ || point.y < lowest_->y) lowest_ = point;
    if (!highest_ || point.y > highest_->y) highest_ = point;
    last_ = point;
    if (point.y > 0) {
      ++num_positive_;
      lowest_positive_ = std::min(lowest_positive_.value_or(point.y), point.y);
    }
  } else {
    ++num_not_finite_;
  }
  if (!stretches_.empty() && stretches_.back().num_values < stretch_length_) {
    merge(stretches_.back(), one);
    return;
  }
  if (stretches_.size() == kMostStretches) {
    for (size_t i = 0; i < kMostStretches / 2; ++i) {
      merge(stretches_[2 * i], stretches_[2 * i + 1]);
      stretches_[i] = stretches_[2 * i];
    }
    stretches_.resize(kMostStretches / 2);
    stretch_length_ *= 2;
  }
  stretches_.push_back(one);
}

void Series::merge(Stretch& into, const Stretch& next) {
  if (into.num_finite == 0 ||
      (next.num_finite > 0 && next.low.y < into.low.y)) {
    into.low = next.low;
  }
  if (into.num_finite == 0 ||
      (next.num_finite > 0 && next.high.y > into.high.y)) {
    into.high = next.high;
  }
  into.last_step = next.last_step;
  into.sum += next.sum;
  into.num_finite += next.num_finite;
  into.num_values += next.num_values;
}

Series::Lines Series::lines() const {
  Lines lines;
  bool is_gap = true;
  for (const Stretch& stretch : stretches_) {
    if (stretch.num_finite > 0) {
      if (is_gap) lines.emplace_back();
      const bool is_rising = stretch.low.x <= stretch.high.x;
      lines.back().push_back(is_rising ? stretch.low : stretch.high);
      if (stretch.num_finite > 1) {
        lines.back().push_back(is_rising ? stretch.high : stretch.low);
      }
    }
    is_gap = stretch.num_finite == 0;
  }
  return lines;
}

Series::Lines Series::smooth_lines() const {
  const double span =
      std::max(3.0, static_cast<double>(stretches_.size()) / 60);
  Lines lines;
  bool is_gap = true;
  for (const Stretch& stretch : stretches_) {
    if (stretch.num_finite > 0) {
      if (is_gap) lines.emplace_back();
      lines.back().push_back(
          {(stretch.first_step + stretch.last_step) / 2,
           stretch.sum / static_cast<double>(stretch.num_finite)});
    }
    is_gap = stretch.num_finite == 0;
  }
  for (auto& line : lines) smooth(line, 1 - 2 / (span + 1));
  return lines;
}

}  // namespace lockstep::plot

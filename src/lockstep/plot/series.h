// One metric over a run, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/plot/drawing.h"

namespace lockstep::plot {

// Values of any number of steps; what is kept are up to 1000 stretches of equal
// length with the lowest and the highest value of each. Values that are not
// finite (or beyond 1e100) leave gaps; those below 1e-100 count as 0.
class Series {
 public:
  // Steps do not decrease.
  void add(double step, double value);

  // Over finite values, with the step as x; among equal values the first.
  const std::optional<Point>& lowest() const { return lowest_; }
  const std::optional<Point>& highest() const { return highest_; }
  const std::optional<Point>& last() const { return last_; }
  // Over values above 0.
  const std::optional<double>& lowest_positive() const {
    return lowest_positive_;
  }
  double first_step() const { return first_step_; }
  double last_step() const { return last_step_; }

  bool is_empty() const { return num_values_ == 0; }
  int64_t num_values() const { return num_values_; }
  int64_t num_not_finite() const { return num_not_finite_; }
  int64_t num_positive() const { return num_positive_; }  // And finite.

  // One line between two gaps each, at most 2000 points together.
  using Lines = std::vector<std::vector<Point>>;
  Lines lines() const;

  // The same without noise: an exponential mean, to both sides, over a few
  // percent of the run.
  Lines smooth_lines() const;

 private:
  struct Stretch {
    double first_step = 0;
    double last_step = 0;
    Point low = {};
    Point high = {};
    double sum = 0;  // Over finite values.
    int64_t num_finite = 0;
    int64_t num_values = 0;
  };
  static void merge(Stretch& into, const Stretch& next);

  std::vector<Stretch> stretches_ = {};
  int64_t stretch_length_ = 1;
  std::optional<Point> lowest_ = {};
  std::optional<Point> highest_ = {};
  std::optional<Point> last_ = {};
  std::optional<double> lowest_positive_ = {};
  double first_step_ = 0;
  double last_step_ = 0;
  int64_t num_values_ = 0;
  int64_t num_not_finite_ = 0;
  int64_t num_positive_ = 0;
};

}  // namespace lockstep::plot

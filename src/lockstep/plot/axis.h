// Axes of a plot: range, scale, and ticks at round numbers.
#pragma once

#include <string>
#include <vector>

namespace lockstep::plot {

enum class Scale { kLinear, kLogarithmic };

struct Tick {
  double value = 0;
  std::string label = {};  // "0.25", "1e-4", "20k".
};

struct Axis {
  double low = 0;
  double high = 1;
  Scale scale = Scale::kLinear;
  std::vector<Tick> ticks = {};

  // 0 at `low`, 1 at `high`. On a logarithmic axis all that is lower stands at
  // its edge, too.
  double position(double value) const;
};

// For finite values from `low` to `high`, of which one may be all there is.
struct AxisConfig {
  double low = 0;
  double high = 1;
  int most_ticks = 6;
  double smallest_step = 0;  // Between ticks; 1 for numbers that are whole.
  double margin = 0.05;      // At both ends, as a part of the range.
};

// Ticks at 1, 2 or 5 times a power of ten. Numbers that are all equal get some
// room around them; where none is negative the axis does not begin below 0.
Axis linear_axis(const AxisConfig& config);

// All values are positive. Ticks at powers of ten, at 2 and 5 times them where
// there is room.
Axis logarithmic_axis(const AxisConfig& config);

}  // namespace lockstep::plot

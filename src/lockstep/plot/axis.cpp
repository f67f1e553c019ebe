#include "lockstep/plot/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep::plot {
namespace {

// 1, 2 or 5 times a power of ten, not below the number.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    // What arithmetic adds at the end must not make a step too long.
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

int exponent_of(double value) {
  return static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
}

std::string fixed(double value, double step) {
  return fmt::format("{:.{}f}", value, std::max(0, -exponent_of(step)));
}

// With the digits in which ticks `step` apart differ.
std::string scientific(double value, double step) {
  const int exponent = exponent_of(value);
  const int digits = std::max(0, exponent - exponent_of(step));
  return fmt::format("{:.{}f}e{}", value / std::pow(10, exponent), digits,
                     exponent);
}

// `largest`: of the axis, so that all labels have one form.
std::string tick_label(double value, double step, double largest) {
  if (std::abs(value) < step / 2) return "0";
  if (largest >= 1e10 || largest < 1e-3) return scientific(value, step);
  if (largest >= 1e6 * (1 - 1e-9)) return fixed(value / 1e6, step / 1e6) + "M";
  if (largest >= 1e4 * (1 - 1e-9)) return fixed(value / 1e3, step / 1e3) + "k";
  return fixed(value, step);
}

std::vector<Tick> linear_ticks(double low, double high, double step) {
  // Whole multiples: sums would drift.
  const double slack = 1e-9;
  const auto first = static_cast<int64_t>(std::ceil(low / step - slack));
  const auto last = static_cast<int64_t>(std::floor(high / step + slack));
  const double largest =
      step * static_cast<double>(std::max(std::abs(first), std::abs(last)));
  std::vector<Tick> ticks;
  for (int64_t i = first; i <= last; ++i) {
    const double value = static_cast<double>(i) * step;
    ticks.push_back({value, tick_label(value, step, largest)});
  }
  return ticks;
}

std::string power_label(double factor, int exponent) {
  if (exponent < -3 || exponent > 3) {
    return fmt::format("{:g}e{}", factor, exponent);
  }
  return fmt::format("{:g}", factor * std::pow(10, exponent));
}

// Powers of ten, with 2 and 5 between them when there is room.
std::vector<Tick> logarithmic_ticks(double low, double high, int most_ticks) {
  const double decades = high - low;
  const bool has_room = 3 * decades <= most_ticks;
  const int stride =
      std::max(1, static_cast<int>(std::ceil(decades / most_ticks)));
  const int first = static_cast<int>(std::floor(low));
  std::vector<Tick> ticks;
  for (int exponent = first; exponent <= high; ++exponent) {
    if (exponent % stride != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double at = exponent + std::log10(factor);
      if (at < low || at > high || (factor > 1 && !has_room)) continue;
      ticks.push_back({std::pow(10, at), power_label(factor, exponent)});
    }
  }
  return ticks;
}

}  // namespace

double Axis::position(double value) const {
  if (scale == Scale::kLinear) return (value - low) / (high - low);
  return std::log10(std::max(value, low) / low) / std::log10(high / low);
}

Axis linear_axis(const AxisConfig& config) {
  double low = config.low;
  double high = config.high;
  const double size = std::max(std::abs(low), std::abs(high));
  // Numbers that are equal, or as good as: some room around them.
  if (high - low <= 1e-6 * size) {
    const double room =
        size == 0 ? 1 : std::max(0.1 * size, config.smallest_step);
    low -= room;
    high += room;
  }
  const double margin = config.margin * (high - low);
  low -= margin;
  high += margin;
  // No room for negative values where there are none.
  if (config.low >= 0) low = std::max(low, 0.0);
  const double step = round_step(
      std::max((high - low) / config.most_ticks, config.smallest_step));
  return {.low = low,
          .high = high,
          .scale = Scale::kLinear,
          .ticks = linear_ticks(low, high, step)};
}

Axis logarithmic_axis(const AxisConfig& config) {
  double low = std::log10(config.low);
  double high = std::log10(config.high);
  if (high - low < 0.1) {
    low -= 0.5;
    high += 0.5;
  }
  const double margin = config.margin * (high - low);
  low -= margin;
  high += margin;
  return {.low = std::pow(10, low),
          .high = std::pow(10, high),
          .scale = Scale::kLogarithmic,
          .ticks = logarithmic_ticks(low, high, config.most_ticks)};
}

}  // namespace lockstep::plot

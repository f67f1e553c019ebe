#include "lockstep/board/curve_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/runs/run_json.h"

namespace lockstep::board {
namespace {

using plot::Point;
using Line = std::vector<Point>;

size_t num_points(const plot::Series::Lines& lines) {
  size_t count = 0;
  for (const Line& line : lines) count += line.size();
  return count;
}

// The lowest and the highest of every `group` points, in their order.
Line thinned_line(const Line& line, size_t group) {
  Line result;
  for (size_t begin = 0; begin < line.size(); begin += group) {
    const auto first = line.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = line.begin() + static_cast<std::ptrdiff_t>(
                                         std::min(begin + group, line.size()));
    const auto [low, high] = std::minmax_element(
        first, last, [](Point a, Point b) { return a.y < b.y; });
    result.push_back(low <= high ? *low : *high);
    if (low != high) result.push_back(low <= high ? *high : *low);
  }
  return result;
}

void add_number(std::string& list, double value) {
  if (list.back() != '[') list += ',';
  fmt::format_to(std::back_inserter(list), "{:.6g}", value);
}

std::string series_json(const plot::Series& series, size_t most) {
  std::string x = "[";
  std::string y = "[";
  for (const Line& line : thinned(series.lines(), most)) {
    if (x.size() > 1) {
      fmt::format_to(std::back_inserter(x), ",{:.0f}", line.front().x);
      y += ",null";
    }
    for (const Point point : line) {
      // Steps are whole numbers, which six digits would round.
      if (x.back() != '[') x += ',';
      fmt::format_to(std::back_inserter(x), "{:.0f}", point.x);
      add_number(y, point.y);
    }
  }
  return fmt::format(R"({{"x":{}],"y":{}],"n":{}}})", x, y,
                     series.num_values());
}

}  // namespace

plot::Series::Lines thinned(const plot::Series::Lines& lines, size_t most) {
  const size_t count = num_points(lines);
  if (count <= most) return lines;
  const size_t group = std::max<size_t>(3, (2 * count + most - 1) / most);
  plot::Series::Lines result;
  for (const Line& line : lines) result.push_back(thinned_line(line, group));
  return result;
}

std::string curves_json(std::span<const plot::NamedSeries> metrics,
                        const std::vector<std::string>& wanted, size_t most) {
  std::string text = "{";
  for (const plot::NamedSeries& one : metrics) {
    if (!wanted.empty() &&
        std::find(wanted.begin(), wanted.end(), one.name) == wanted.end()) {
      continue;
    }
    if (text.size() > 1) text += ',';
    text += runs::json_text(one.name) + ":" + series_json(one.series, most);
  }
  return text + "}";
}

}  // namespace lockstep::board

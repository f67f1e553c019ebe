// One line of metrics.jsonl as numbers. Files of a long training have 100,000
// of them, so what Lockstep itself writes is read without a JSON tree.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::track {

struct MetricValue {
  std::string_view name = {};
  double value = 0;
};

class MetricLineParser {
 public:
  // False for a line that is not a record: not an object, or without a whole
  // "step". Members that are neither numbers nor "nan", "inf" or "-inf" are
  // left out.
  bool parse(std::string_view line);

  int64_t step() const { return step_; }
  // In their order; valid until the line goes or the next parse().
  std::span<const MetricValue> values() const { return values_; }

 private:
  bool parse_plain(std::string_view line);
  bool parse_json(std::string_view line);

  int64_t step_ = 0;
  std::vector<MetricValue> values_ = {};
  std::deque<std::string> names_ = {};  // Those that are not in the line as is.
};

}  // namespace lockstep::track

#include "lockstep/track/metric_line.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

namespace lockstep::track {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kStep = "step";

std::optional<double> special_number(std::string_view text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::optional<double> json_number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  return special_number(value.get_ref<const std::string&>());
}

// Takes characters off the front of a line.
class Cursor {
 public:
  explicit Cursor(std::string_view rest) : rest_(rest) {}

  bool take(char expected) {
    if (rest_.empty() || rest_[0] != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // A text without escapes and control characters.
  bool take_text(std::string_view& text) {
    if (!take('"')) return false;
    const size_t end = rest_.find('"');
    if (end == std::string_view::npos) return false;
    text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return std::all_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) >= 0x20 && c != '\\' && c >= 0;
    });
  }

  template <typename Number>
  bool take_number(Number& number) {
    const size_t digit = !rest_.empty() && rest_[0] == '-' ? 1 : 0;
    if (rest_.size() <= digit || rest_[digit] < '0' || rest_[digit] > '9') {
      return false;  // from_chars() also takes "inf" and "nan".
    }
    const auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }

  bool is_at(char c) const { return !rest_.empty() && rest_[0] == c; }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

bool MetricLineParser::parse(std::string_view line) {
  values_.clear();
  names_.clear();
  if (line.empty() || line[0] != '{') return parse_json(line);
  if (parse_plain(line)) return true;
  values_.clear();
  return parse_json(line);
}

// {"step":8,"train/loss":0.5,"train/grad_norm":"nan"} and nothing else.
bool MetricLineParser::parse_plain(std::string_view line) {
  Cursor cursor(line);
  std::string_view name;
  if (!cursor.take('{') || !cursor.take_text(name) || name != kStep ||
      !cursor.take(':') || !cursor.take_number(step_)) {
    return false;
  }
  while (cursor.take(',')) {
    MetricValue value;
    if (!cursor.take_text(value.name) || value.name == kStep ||
        !cursor.take(':')) {
      return false;
    }
    if (cursor.is_at('"')) {
      std::string_view text;
      if (!cursor.take_text(text)) return false;
      const auto number = special_number(text);
      if (!number) continue;
      value.value = *number;
    } else if (!cursor.take_number(value.value)) {
      return false;
    }
    values_.push_back(value);
  }
  return cursor.take('}') && cursor.is_at_end();
}

bool MetricLineParser::parse_json(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  const auto step = json.find(kStep);
  if (step == json.end() || !step->is_number_integer()) return false;
  step_ = step->get<int64_t>();
  for (const auto& [name, value] : json.items()) {
    const auto number = json_number(value);
    if (name == kStep || !number) continue;
    names_.push_back(name);
    values_.push_back({.name = names_.back(), .value = *number});
  }
  return true;
}

}  // namespace lockstep::track

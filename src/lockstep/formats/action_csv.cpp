#include "lockstep/formats/action_csv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::formats {
namespace {

constexpr const char* kHeader = "x,y,z,roll,pitch,yaw,gripper";

[[noreturn]] void refuse_line(const std::string& where, size_t line,
                              const std::string& why) {
  throw FormatError(fmt::format("{}, line {}: {}", where, line, why));
}

// A field for a message: short, whatever is in it.
std::string shown(std::string_view field) {
  constexpr size_t kMost = 40;
  std::string text(field.substr(0, kMost));
  for (char& letter : text) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return field.size() > kMost ? text + "..." : text;
}

// Records of a csv text, one after the other.
class CsvRecords {
 public:
  CsvRecords(std::string_view content, const std::string& where)
      : rest_(content), where_(where) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (rest_.starts_with(kByteOrderMark)) {
      rest_.remove_prefix(kByteOrderMark.size());
    }
  }

  // False at the end. Empty lines are skipped.
  bool next(std::vector<std::string>& fields) {
    while (!rest_.empty()) {
      line_ = next_line_;
      fields.clear();
      while (take_field(fields)) {
      }
      if (fields.size() > 1 || !base::trim(fields.front()).empty()) return true;
    }
    return false;
  }

  size_t line() const { return line_; }  // The record's first line, from 1.

 private:
  // False when it was the last one of its line.
  bool take_field(std::vector<std::string>& fields) {
    if (rest_.starts_with('"')) {
      fields.push_back(take_quoted());
    } else {
      const size_t size = std::min(rest_.find_first_of(",\n"), rest_.size());
      fields.emplace_back(base::trim(rest_.substr(0, size)));
      rest_.remove_prefix(size);
    }
    if (rest_.starts_with(',')) {
      rest_.remove_prefix(1);
      return true;
    }
    if (rest_.starts_with("\r\n")) rest_.remove_prefix(1);
    if (rest_.starts_with('\n')) {
      rest_.remove_prefix(1);
      ++next_line_;
    } else if (!rest_.empty()) {
      refuse_line(where_, line_, "a quoted field is followed by other letters");
    }
    return false;
  }

  std::string take_quoted() {
    std::string field;
    rest_.remove_prefix(1);
    while (true) {
      const size_t size = rest_.find('"');
      if (size == std::string_view::npos) {
        refuse_line(where_, line_, "a quoted field does not end");
      }
      field += rest_.substr(0, size);
      rest_.remove_prefix(size + 1);
      if (!rest_.starts_with('"')) break;
      field += '"';
      rest_.remove_prefix(1);
    }
    next_line_ +=
        static_cast<size_t>(std::count(field.begin(), field.end(), '\n'));
    return field;
  }

  std::string_view rest_;
  const std::string& where_;
  size_t line_ = 0;
  size_t next_line_ = 1;
};

// No value unless the text is a number that a float can hold.
std::optional<float> float_of(std::string_view text) {
  text = base::trim(text);
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  const auto number = base::parse_number(text);
  constexpr double kMost = std::numeric_limits<float>::max();
  // NaN is not below either.
  if (!number || !(std::abs(*number) <= kMost)) return std::nullopt;
  return static_cast<float>(*number);
}

}  // namespace

std::array<size_t, kActionSize> action_columns(
    std::span<const std::string> header, const std::string& where) {
  if (header.size() < kActionSize) {
    throw FormatError(fmt::format(
        "{}: {} columns instead of at least 7; the header is {}{}", where,
        header.size(), kHeader,
        header.size() == 1 && header[0].find(';') != std::string::npos
            ? ", with commas"
            : ""));
  }
  std::array<size_t, kActionSize> columns{};
  bool all_named = true;
  for (size_t i = 0; i < kActionSize; ++i) {
    const auto found = std::find_if(
        header.begin(), header.end(), [&](const std::string& name) {
          return base::trim(name) == kActionNames[i];
        });
    all_named = all_named && found != header.end();
    columns[i] = static_cast<size_t>(found - header.begin());
  }
  if (all_named) return columns;
  for (size_t i = 0; i < kActionSize; ++i) columns[i] = i;
  if (std::all_of(header.begin(), header.begin() + kActionSize,
                  [](const std::string& name) {
                    return base::parse_number(base::trim(name)).has_value();
                  })) {
    throw FormatError(fmt::format(
        "{}: the header is missing; write a first line {}", where, kHeader));
  }
  return columns;
}

std::vector<Action> parse_action_csv(std::string_view content,
                                     const std::string& where) {
  CsvRecords records(content, where);
  std::vector<std::string> fields;
  if (!records.next(fields)) {
    throw FormatError(
        fmt::format("{} is empty; it holds a header {} and one line per frame",
                    where, kHeader));
  }
  const std::vector<std::string> header = fields;
  const auto columns = action_columns(header, where);
  std::vector<Action> actions;
  while (records.next(fields)) {
    if (fields.size() != header.size()) {
      refuse_line(where, records.line(),
                  fmt::format("{} fields where the header has {}",
                              fields.size(), header.size()));
    }
    Action& action = actions.emplace_back();
    for (size_t i = 0; i < kActionSize; ++i) {
      const auto number = float_of(fields[columns[i]]);
      if (!number) {
        refuse_line(
            where, records.line(),
            fmt::format("column '{}' ({}) holds '{}', which is not a finite "
                        "number",
                        shown(header[columns[i]]), kActionNames[i],
                        shown(fields[columns[i]])));
      }
      action[i] = *number;
    }
  }
  return actions;
}

std::string action_csv_text(std::span<const Action> actions) {
  std::string text = std::string(kHeader) + "\n";
  for (const Action& action : actions) {
    text += fmt::format("{}\n", fmt::join(action, ","));
  }
  return text;
}

}  // namespace lockstep::formats

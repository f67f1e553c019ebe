#include "lockstep/base/host_list.h"

#include <fmt/format.h>

#include <limits>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::base {
namespace {

constexpr size_t kMostNames = 65536;
// Longer numbers are no numbers of hosts, and would not fit 64 bits.
constexpr size_t kMostDigits = 18;

[[noreturn]] void refuse_list(std::string_view text) {
  constexpr size_t kShown = 200;
  throw ConfigError(
      fmt::format("'{}' is not a list of hosts such as node[01-03,07]; set "
                  "MASTER_ADDR and MASTER_PORT instead",
                  text.substr(0, kShown)));
}

[[noreturn]] void refuse_counts(std::string_view text) {
  constexpr size_t kShown = 200;
  throw ConfigError(
      fmt::format("'{}' is not a list of tasks per node such as 2(x3),1",
                  text.substr(0, kShown)));
}

// At commas outside of brackets.
std::vector<std::string_view> split_names(std::string_view text) {
  std::vector<std::string_view> names;
  size_t begin = 0;
  bool is_inside = false;
  for (size_t at = 0; at <= text.size(); ++at) {
    const char letter = at < text.size() ? text[at] : ',';
    if (letter == '[' || letter == ']') {
      if (is_inside == (letter == '[')) refuse_list(text);
      is_inside = letter == '[';
    }
    if (letter != ',' || (is_inside && at < text.size())) continue;
    if (is_inside || at == begin) refuse_list(text);
    names.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  return names;
}

int64_t host_number(std::string_view digits, std::string_view text) {
  const auto number = parse_integer(digits);
  if (!number || *number < 0 || digits.size() > kMostDigits) refuse_list(text);
  return *number;
}

// "01-03,07" is 01, 02, 03, 07: numbers keep the width of the first one.
std::vector<std::string> expand_numbers(std::string_view ranges,
                                        std::string_view text) {
  std::vector<std::string> numbers;
  for (const std::string& range : split(ranges, ',')) {
    const size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const std::string last =
        dash == std::string::npos ? first : range.substr(dash + 1);
    const int64_t begin = host_number(first, text);
    const int64_t end = host_number(last, text);
    if (begin > end || end - begin >= static_cast<int64_t>(kMostNames) ||
        numbers.size() > kMostNames) {
      refuse_list(text);
    }
    for (int64_t number = begin; number <= end; ++number) {
      numbers.push_back(fmt::format("{:0{}}", number, first.size()));
    }
  }
  return numbers;
}

// One name with its brackets, from left to right.
std::vector<std::string> expand_name(std::string_view name,
                                     std::string_view text) {
  std::vector<std::string> names = {""};
  while (!name.empty()) {
    const size_t open = name.find('[');
    for (std::string& known : names) known += name.substr(0, open);
    if (open == std::string_view::npos) break;
    const size_t close = name.find(']', open);
    const auto numbers =
        expand_numbers(name.substr(open + 1, close - open - 1), text);
    if (names.size() * numbers.size() > kMostNames) refuse_list(text);
    std::vector<std::string> longer;
    for (const std::string& known : names) {
      for (const std::string& number : numbers)
        longer.push_back(known + number);
    }
    names = std::move(longer);
    name.remove_prefix(close + 1);
  }
  return names;
}

int task_count(std::string_view digits, std::string_view text) {
  const auto number = parse_integer(digits);
  if (!number || *number < 1 || *number > std::numeric_limits<int>::max()) {
    refuse_counts(text);
  }
  return static_cast<int>(*number);
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view text) {
  std::vector<std::string> hosts;
  for (const std::string_view name : split_names(text)) {
    for (std::string& host : expand_name(name, text)) {
      if (hosts.size() == kMostNames) refuse_list(text);
      hosts.push_back(std::move(host));
    }
  }
  return hosts;
}

std::vector<int> expand_task_counts(std::string_view text) {
  std::vector<int> counts;
  for (const std::string& part : split(text, ',')) {
    const size_t open = part.find("(x");
    int repeats = 1;
    if (open != std::string::npos) {
      if (!part.ends_with(')')) refuse_counts(text);
      repeats = task_count(part.substr(open + 2, part.size() - open - 3), text);
    }
    if (counts.size() + static_cast<size_t>(repeats) > kMostNames) {
      refuse_counts(text);
    }
    counts.insert(counts.end(), repeats,
                  task_count(part.substr(0, open), text));
  }
  return counts;
}

}  // namespace lockstep::base

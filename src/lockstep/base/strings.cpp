#include "lockstep/base/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>

namespace lockstep::base {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string join(std::span<const std::string> parts,
                 std::string_view separator) {
  return fmt::format("{}", fmt::join(parts.begin(), parts.end(), separator));
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string replace_all(std::string text, std::string_view from,
                        std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

void number_equal_names(std::vector<std::string>& names) {
  std::set<std::string> taken;
  for (std::string& name : names) {
    std::string wanted = name;
    for (int number = 2; !taken.insert(wanted).second; ++number) {
      wanted = name + "_" + std::to_string(number);
    }
    name = std::move(wanted);
  }
}

std::optional<int64_t> parse_integer(std::string_view text) {
  return parse<int64_t>(text);
}

std::optional<double> parse_number(std::string_view text) {
  return parse<double>(text);
}

std::optional<std::string> nearest(std::string_view word,
                                   std::span<const std::string> candidates) {
  // Nobody mistypes more than that; the distance takes the product of both
  // lengths in steps, and the word may come from a file.
  constexpr size_t kLongest = 200;
  if (word.size() > kLongest) return std::nullopt;
  // Farther than a third of the word is another word, not a typing mistake.
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  std::optional<std::string> best;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string list_of(std::span<const int> numbers) {
  return fmt::format("{}", fmt::join(numbers.begin(), numbers.end(), ", "));
}

std::string duration_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace lockstep::base

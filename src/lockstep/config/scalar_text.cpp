#include "lockstep/config/scalar_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>

#include "lockstep/base/printable.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/utf8.h"

namespace lockstep::config {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

// The text without a plus sign, which std::from_chars does not know.
std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  return text;
}

std::optional<double> parse_double(std::string_view written) {
  const std::string text = lower(without_plus(written));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "inf" || text == ".inf") return kInfinity;
  if (text == "-inf" || text == "-.inf") return -kInfinity;
  if (text == "nan" || text == ".nan") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  // Leaves out other words that std::from_chars reads, such as "nan(1)".
  if (text.find_first_not_of("0123456789.e+-") != std::string::npos) {
    return std::nullopt;
  }
  return base::parse_number(text);
}

std::optional<int64_t> parse_whole(std::string_view written) {
  const std::string_view text = without_plus(written);
  if (const auto integer = base::parse_integer(text)) return integer;
  if (text.find_first_of("eE") == std::string_view::npos) return std::nullopt;
  // Up to here every integral double is exact.
  constexpr double kLargest = 9007199254740992.0;
  const auto number = parse_double(text);
  if (!number || std::abs(*number) > kLargest ||
      *number != std::trunc(*number)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*number);
}

// With a dot and a signed exponent: YAML 1.1 readers, PyYAML among them, take
// 1e-05 for a text.
std::string number_text(double number) {
  if (std::isnan(number)) return ".nan";
  if (std::isinf(number)) return number > 0 ? ".inf" : "-.inf";
  std::string text = fmt::format("{}", number);
  if (text.find('.') != std::string::npos) return text;
  const auto exponent = text.find('e');
  return text.insert(exponent == std::string::npos ? text.size() : exponent,
                     ".0");
}

bool is_plain(const std::string& text) {
  constexpr std::array kWords = {"true", "false", "yes",     "no", "on",
                                 "off",  "null",  "none",    "y",  "n",
                                 "inf",  "nan",   "infinity"};
  if (text.empty() || text.back() == ' ') return false;
  const bool starts_well = std::isalpha(static_cast<unsigned char>(text[0])) ||
                           text[0] == '_' || text[0] == '/' ||
                           text.starts_with("./") || text.starts_with("../");
  const bool safe = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x80 &&
           (std::isalnum(static_cast<unsigned char>(c)) ||
            std::string_view("_-./+=@% ").find(c) != std::string_view::npos);
  });
  return starts_well && safe &&
         std::find(kWords.begin(), kWords.end(), lower(text)) == kWords.end();
}

// The escape of a code point that must not stand in a YAML text as it is; empty
// for all others.
std::string escape(std::string_view bytes) {
  if (bytes == "\"" || bytes == "\\") return "\\" + std::string(bytes);
  if (bytes == "\n") return "\\n";
  if (bytes == "\t") return "\\t";
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (bytes.size() == 1 && (first < 0x20 || first == 0x7f)) {
    return fmt::format("\\x{:02x}", first);
  }
  if (bytes.size() == 2 && first == 0xc2) {  // Controls U+0080 to U+009F.
    const auto second = static_cast<unsigned char>(bytes[1]);
    if (second < 0xa0) return fmt::format("\\x{:02x}", second);
  }
  if (bytes == "\u2028") return "\\u2028";
  if (bytes == "\u2029") return "\\u2029";
  if (bytes == "\ufeff") return "\\ufeff";
  return "";
}

std::string yaml_quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const size_t size = std::max<size_t>(1, base::code_point_size(text));
    const std::string_view bytes = text.substr(0, size);
    const std::string escaped = escape(bytes);
    result += escaped.empty() ? bytes : escaped;
    text.remove_prefix(size);
  }
  return result + '"';
}

}  // namespace

std::optional<bool> parse_bool(std::string_view text) {
  const std::string word = lower(text);
  if (word == "true" || word == "yes" || word == "on" || word == "1") {
    return true;
  }
  if (word == "false" || word == "no" || word == "off" || word == "0") {
    return false;
  }
  return std::nullopt;
}

bool is_none(std::string_view text) {
  const std::string word = lower(text);
  return word == "none" || word == "null";
}

std::optional<SettingScalar> parse_scalar(ScalarKind kind,
                                          std::string_view text) {
  switch (kind) {
    case ScalarKind::kBool: return parse_bool(text);
    case ScalarKind::kInteger: return parse_whole(text);
    case ScalarKind::kNumber: return parse_double(text);
    case ScalarKind::kText: return std::string(text);
  }
  return std::nullopt;
}

std::string yaml_scalar(const SettingScalar& scalar) {
  if (const auto* truth = std::get_if<bool>(&scalar)) {
    return *truth ? "true" : "false";
  }
  if (const auto* integer = std::get_if<int64_t>(&scalar)) {
    return std::to_string(*integer);
  }
  if (const auto* number = std::get_if<double>(&scalar)) {
    return number_text(*number);
  }
  const auto& text = std::get<std::string>(scalar);
  return is_plain(text) ? text : yaml_quoted(text);
}

std::string yaml_value(ValueShape shape, const SettingValue& value) {
  if (shape != ValueShape::kList) {
    return value.empty() ? "null" : yaml_scalar(value.front());
  }
  std::vector<std::string> items;
  for (const SettingScalar& item : value) items.push_back(yaml_scalar(item));
  return "[" + base::join(items, ", ") + "]";
}

std::string shown(std::string_view text) {
  constexpr size_t kLongest = 80;
  return "'" + base::printable_line(text, kLongest) + "'";
}

}  // namespace lockstep::config

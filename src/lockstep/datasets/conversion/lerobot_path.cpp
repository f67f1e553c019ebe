#include "lockstep/datasets/conversion/lerobot_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::conversion {
namespace {

namespace fs = std::filesystem;

// A number's width: 3 for "03d", 0 for "" and "d".
std::optional<int64_t> width_of(std::string format) {
  if (format.ends_with('d')) format.pop_back();
  if (format.empty()) return 0;
  constexpr int64_t kMost = 20;
  const auto width = base::parse_integer(format);
  if (format.front() != '0' || !width || *width < 0 || *width > kMost) {
    return std::nullopt;
  }
  return width;
}

// What stands between two braces.
std::string filled(const std::string& pattern, const std::string& inner,
                   const LerobotPathFields& fields) {
  const size_t colon = std::min(inner.find(':'), inner.size());
  const auto found = fields.find(inner.substr(0, colon));
  const std::string format =
      colon == inner.size() ? "" : inner.substr(colon + 1);
  const auto width = width_of(format);
  if (found != fields.end() && width) {
    if (const auto* number = std::get_if<int64_t>(&found->second)) {
      return fmt::format("{:0{}}", *number, *width);
    }
    if (format.empty()) return std::get<std::string>(found->second);
  }
  throw FormatError(
      fmt::format("meta/info.json: '{{{}}}' in the path '{}' is not known",
                  inner, pattern));
}

bool leads_out(const fs::path& path) {
  return path.is_absolute() ||
         std::find(path.begin(), path.end(), "..") != path.end();
}

}  // namespace

fs::path lerobot_path(const std::string& pattern,
                      const LerobotPathFields& fields) {
  std::string text;
  for (size_t i = 0; i < pattern.size();) {
    const size_t end = pattern.find('}', i);
    if (pattern[i] != '{' || end == std::string::npos) {
      text += pattern[i++];
      continue;
    }
    text += filled(pattern, pattern.substr(i + 1, end - i - 1), fields);
    i = end + 1;
  }
  if (text.empty() || leads_out(text)) {
    throw FormatError(fmt::format(
        "meta/info.json: the path '{}' is not inside the data set", text));
  }
  return text;
}

}  // namespace lockstep::conversion

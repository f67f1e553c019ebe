#include "lockstep/launch/streams.h"

#include <algorithm>
#include <optional>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

std::optional<int> parse_streams(std::string_view text) {
  const auto value = base::parse_integer(text);
  if (!value || *value < 0 || *value > 3) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

StreamMap StreamMap::parse(std::string_view text, std::string_view option) {
  StreamMap map;
  if (const auto all = parse_streams(text)) {
    map.for_all_ = *all;
    return map;
  }
  for (const std::string& part : base::split(text, ',')) {
    const auto fields = base::split(part, ':');
    const auto rank = base::parse_integer(fields[0]);
    const auto streams =
        fields.size() == 2 ? parse_streams(fields[1]) : std::nullopt;
    if (!rank || *rank < 0 || !streams) {
      throw ConfigError("--" + std::string(option) + " '" + std::string(text) +
                        "' must be 0, 1 (stdout), 2 (stderr) or 3 (both), or "
                        "a list by local rank such as 0:3,1:2");
    }
    map.for_rank_[static_cast<int>(*rank)] = *streams;
  }
  return map;
}

bool StreamMap::has(int local_rank, Stream stream) const {
  const auto found = for_rank_.find(local_rank);
  const int streams = found == for_rank_.end() ? for_all_ : found->second;
  return (streams & static_cast<int>(stream)) != 0;
}

bool StreamMap::is_empty() const {
  return for_all_ == 0 &&
         std::all_of(for_rank_.begin(), for_rank_.end(),
                     [](const auto& entry) { return entry.second == 0; });
}

}  // namespace lockstep::launch

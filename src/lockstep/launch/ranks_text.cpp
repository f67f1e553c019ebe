#include "lockstep/launch/ranks_text.h"

#include <fmt/format.h>

#include <vector>

#include "lockstep/base/strings.h"

namespace lockstep::launch {

std::string ranks_text(std::span<const int> ranks, int num_ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  if (static_cast<int>(ranks.size()) == num_ranks) {
    return fmt::format("all {} ranks", num_ranks);
  }
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < ranks.size();) {
    size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    parts.push_back(end - begin == 1
                        ? fmt::format("{}", ranks[begin])
                        : fmt::format("{}-{}", ranks[begin], ranks[end - 1]));
    begin = end;
  }
  return "ranks " + base::join(parts, ", ");
}

}  // namespace lockstep::launch

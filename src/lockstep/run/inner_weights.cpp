#include "lockstep/run/inner_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/base/printable.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::run {
namespace {

constexpr const char* kUsualPrefix = "model.";
constexpr size_t kMaxShown = 5;
constexpr int kMaxDepth = 8;  // A name of a file may have any number of dots.

using Names = std::set<std::string, std::less<>>;

const std::string& name_of(const Tree::Entry& entry) {
  return *entry.key.get_if<std::string>();
}

bool fits_as_it_is(const Tree::Dict& weights, const Names& names) {
  std::vector<std::string> given;
  for (const auto& entry : weights) given.push_back(name_of(entry));
  const size_t wrapped = wrapper_prefix(given).size();
  return std::ranges::any_of(given, [&](const std::string& name) {
    return names.contains(name) || names.contains(name.substr(wrapped));
  });
}

// How many of the model's names follow each prefix.
std::map<std::string, size_t> count_prefixes(const Tree::Dict& weights,
                                             const Names& names) {
  std::map<std::string, size_t> counts;
  for (const auto& entry : weights) {
    const std::string_view name = name_of(entry);
    size_t dot = name.find('.');
    for (int depth = 0; depth < kMaxDepth && dot != name.npos; ++depth) {
      if (names.contains(name.substr(dot + 1))) {
        ++counts[std::string(name.substr(0, dot + 1))];
      }
      dot = name.find('.', dot + 1);
    }
  }
  return counts;
}

// Empty when no prefix holds half of the model.
std::string best_prefix(const Tree::Dict& weights, const Names& names,
                        const std::string& path) {
  std::vector<std::string> best;
  size_t most = (names.size() + 1) / 2;
  for (const auto& [prefix, count] : count_prefixes(weights, names)) {
    if (count < most) continue;
    if (count > most) best.clear();
    most = count;
    best.push_back(prefix);
  }
  if (best.size() <= 1) return best.empty() ? "" : best.front();
  if (std::ranges::find(best, kUsualPrefix) != best.end()) return kUsualPrefix;
  if (best.size() > kMaxShown) {
    best.resize(kMaxShown);
    best.push_back("...");
  }
  throw ConfigError(fmt::format(
      "--init_from {}: it holds the model several times, under {}; make a file "
      "of one of them: lockstep export {} weights.pt --key KEY, where KEY is "
      "the beginning of its names in lockstep inspect, such as "
      "state_dict.model",
      path, base::printable_line(base::join(best, ", ")), path));
}

}  // namespace

InnerWeights find_inner_weights(Tree weights,
                                const std::vector<std::string>& names,
                                const std::string& path) {
  const auto& dict = *weights.get_if<Tree::Dict>();
  const Names own(names.begin(), names.end());
  InnerWeights found;
  if (!fits_as_it_is(dict, own)) found.prefix = best_prefix(dict, own, path);
  if (found.prefix.empty()) {
    found.weights = std::move(weights);
    return found;
  }
  Tree::Dict inner;
  for (const auto& entry : dict) {
    if (name_of(entry).starts_with(found.prefix)) {
      inner.push_back(
          {name_of(entry).substr(found.prefix.size()), entry.value});
    } else {
      ++found.num_left_out;
    }
  }
  found.weights = std::move(inner);
  return found;
}

}  // namespace lockstep::run

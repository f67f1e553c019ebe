#include "lockstep/runs/run_diff.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/strings.h"
#include "lockstep/config/yaml_tree.h"
#include "lockstep/runs/growing_file.h"
#include "lockstep/runs/run_files.h"
#include "lockstep/track/metric_line.h"

namespace lockstep::runs {
namespace {

using config::YamlNode;
using Losses = std::vector<std::pair<int64_t, double>>;

constexpr double kNotable = 0.01;

std::string value_of(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kList) return node.text;
  std::vector<std::string> parts;
  parts.reserve(node.children.size());
  for (const YamlNode& child : node.children) parts.push_back(value_of(child));
  return "[" + base::join(parts, ", ") + "]";
}

void add_settings(const YamlNode& node, const std::string& prefix,
                  NamedSettings& settings) {
  for (const YamlNode& child : node.children) {
    const std::string name = prefix + child.key;
    if (child.kind == YamlNode::Kind::kMap) {
      add_settings(child, name + ".", settings);
    } else {
      settings.emplace_back(name, value_of(child));
    }
  }
}

std::optional<std::string> find_setting(const NamedSettings& settings,
                                        const std::string& name) {
  for (const auto& [known, value] : settings) {
    if (known == name) return value;
  }
  return std::nullopt;
}

Losses read_losses(const FolderTree& run) {
  Losses losses;
  track::MetricLineParser parser;
  GrowingFile file(kMetricsFile);
  file.read(run,
            {.restart = [] {},
             .lines =
                 [&](std::string_view lines) {
                   for (const std::string& line : base::split(lines, '\n')) {
                     if (!parser.parse(line)) continue;
                     for (const track::MetricValue& one : parser.values()) {
                       if (one.name != "train/loss") continue;
                       losses.emplace_back(parser.step(), one.value);
                     }
                   }
                 }});
  return losses;
}

bool is_equal(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool is_notable(double a, double b) {
  const double scale = std::max(std::abs(a), std::abs(b));
  return !is_equal(a, b) && !(std::abs(a - b) <= kNotable * scale);
}

}  // namespace

NamedSettings named_settings(std::string_view yaml,
                             std::string_view file_name) {
  NamedSettings settings;
  add_settings(config::parse_yaml(yaml, file_name), "", settings);
  return settings;
}

std::vector<SettingDifference> compare_settings(const NamedSettings& first,
                                                const NamedSettings& second) {
  std::vector<SettingDifference> differences;
  for (const auto& [name, value] : first) {
    const auto other = find_setting(second, name);
    if (other != value) differences.push_back({name, value, other});
  }
  for (const auto& [name, value] : second) {
    if (!find_setting(first, name)) {
      differences.push_back({name, std::nullopt, value});
    }
  }
  return differences;
}

LossComparison compare_losses(const FolderTree& first,
                              const FolderTree& second) {
  const Losses a = read_losses(first);
  const Losses b = read_losses(second);
  LossComparison result;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (a[i].first != b[k].first) {
      a[i].first < b[k].first ? ++i : ++k;
      continue;
    }
    const LossDifference here{a[i].first, a[i].second, b[k].second};
    ++result.num_common;
    result.last_common = here.step;
    if (!result.first_difference && !is_equal(here.first, here.second)) {
      result.first_difference = here;
    }
    if (!result.first_notable && is_notable(here.first, here.second)) {
      result.first_notable = here;
    }
    ++i;
    ++k;
  }
  return result;
}

}  // namespace lockstep::runs

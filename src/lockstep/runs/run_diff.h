// Where two runs differ: settings, and the first step at which losses part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/runs/folder_tree.h"

namespace lockstep::runs {

// Settings of a config.yaml by their full names ("wandb.enabled"), in its
// order. Throws ConfigError for a text that is not YAML.
using NamedSettings = std::vector<std::pair<std::string, std::string>>;
NamedSettings named_settings(std::string_view yaml, std::string_view file_name);

struct SettingDifference {
  std::string name = {};
  std::optional<std::string> first = {};  // Unset: the run has no such setting.
  std::optional<std::string> second = {};
};

std::vector<SettingDifference> compare_settings(const NamedSettings& first,
                                                const NamedSettings& second);

struct LossDifference {
  int64_t step = 0;
  double first = 0;
  double second = 0;
};

struct LossComparison {
  int64_t num_common = 0;  // Steps that both recorded.
  int64_t last_common = 0;
  std::optional<LossDifference> first_difference = {};  // Any size.
  std::optional<LossDifference> first_notable = {};     // Beyond 1 %.
};

// Compares train/loss value by value. Reads both runs from the beginning.
LossComparison compare_losses(const FolderTree& first,
                              const FolderTree& second);

}  // namespace lockstep::runs

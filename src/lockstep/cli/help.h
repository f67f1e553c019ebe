// The help text of a command on a recipe.
#pragma once

#include <string>
#include <vector>

#include "lockstep/config/groups.h"
#include "lockstep/config/render.h"
#include "lockstep/options.h"
#include "lockstep/recipe.h"

namespace lockstep::cli {

struct HelpConfig {
  Purpose purpose = Purpose::kTrain;
  std::string usage = {};
  std::string about = {};    // The recipe in one line.
  std::string command = {};  // "lockstep train tiny", for the last line.
  // Flags of the launcher that are shown first; empty: none.
  std::vector<config::HelpRow> launching = {};
};

// The settings that only this recipe has, and those that all recipes share, by
// group.
std::vector<config::SettingGroup> own_groups(const Options& options);
std::vector<config::SettingGroup> common_groups(const Options& options);

// --help: the launcher's flags, the recipe's own, then the most used of the
// common ones for this purpose.
std::string short_help(const Options& options, const HelpConfig& config);

// --help_all: all flags, with limits and aliases.
std::string full_help(const Options& options, const HelpConfig& config);

}  // namespace lockstep::cli

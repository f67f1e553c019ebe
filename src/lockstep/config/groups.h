// Settings by group, as help and documents show them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/options.h"

namespace lockstep::config {

struct SettingGroup {
  std::string title = {};
  std::vector<const Setting*> settings = {};
};

// In the order in which groups and settings were added; those without a group
// come first, as "Settings". Valid as long as the options are unchanged.
std::vector<SettingGroup> groups_of(const Options& options);

// The same for some settings, in their order.
std::vector<SettingGroup> groups_of(
    const std::vector<const Setting*>& settings);

// "INT", "NUMBER ...": what stands for the value; empty for a bool.
std::string value_name(const Setting& setting);

// The default as help shows it.
std::string default_text(const Setting& setting);

}  // namespace lockstep::config

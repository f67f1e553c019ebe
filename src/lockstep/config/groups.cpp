#include "lockstep/config/groups.h"

#include <algorithm>

#include "lockstep/config/scalar_text.h"

namespace lockstep::config {

std::vector<SettingGroup> groups_of(const Options& options) {
  std::vector<const Setting*> all;
  for (const Setting& setting : options.settings()) all.push_back(&setting);
  return groups_of(all);
}

std::vector<SettingGroup> groups_of(
    const std::vector<const Setting*>& settings) {
  std::vector<SettingGroup> groups = {{.title = "Settings"}};
  for (const Setting* setting : settings) {
    const std::string& title = setting->details.group.empty()
                                   ? groups.front().title
                                   : setting->details.group;
    auto group =
        std::find_if(groups.begin(), groups.end(),
                     [&](const auto& other) { return other.title == title; });
    if (group == groups.end()) {
      group = groups.insert(group, {.title = title});
    }
    group->settings.push_back(setting);
  }
  if (groups.front().settings.empty()) groups.erase(groups.begin());
  return groups;
}

std::string value_name(const Setting& setting) {
  std::string name;
  switch (setting.binding.kind) {
    case ScalarKind::kBool: return "";
    case ScalarKind::kInteger: name = "INT"; break;
    case ScalarKind::kNumber: name = "NUMBER"; break;
    case ScalarKind::kText: name = "TEXT"; break;
  }
  if (setting.binding.shape == ValueShape::kList) name += " ...";
  return name;
}

std::string default_text(const Setting& setting) {
  if (!setting.details.shown_default.empty()) {
    return setting.details.shown_default;
  }
  if (setting.default_value.empty()) return "none";
  return yaml_value(setting.binding.shape, setting.default_value);
}

}  // namespace lockstep::config

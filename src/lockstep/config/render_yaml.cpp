#include <algorithm>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/config/render.h"
#include "lockstep/config/scalar_text.h"
#include "lockstep/config/setting.h"

namespace lockstep::config {
namespace {

// A key with a value, or a section with entries in the order of their first
// setting.
struct Entry {
  std::string key = {};
  std::string value = {};
  std::vector<Entry> entries = {};
};

Entry& entry_in(Entry& section, const std::string& key) {
  for (Entry& entry : section.entries) {
    if (normalized(entry.key) == normalized(key)) return entry;
  }
  section.entries.push_back({.key = key});
  return section.entries.back();
}

void write(const Entry& section, const std::string& indent, std::string& text) {
  for (const Entry& entry : section.entries) {
    text += indent + yaml_scalar(entry.key) + ":";
    if (entry.entries.empty()) {
      text += " " + entry.value + "\n";
    } else {
      text += "\n";
      write(entry, indent + "  ", text);
    }
  }
}

bool is_derived(const Setting& setting, const Options& options) {
  if (setting.details.follows.empty() || setting.source != Source::kDefault) {
    return false;
  }
  const std::string other = options.value_text(setting.details.follows);
  return other != "null" && other != "false";
}

}  // namespace

std::string to_yaml(const Options& options) {
  Entry root;
  for (const Setting& setting : options.settings()) {
    if (setting.details.once || is_derived(setting, options)) continue;
    Entry* entry = &root;
    for (const std::string& part : base::split(setting.key(), '.')) {
      entry = &entry_in(*entry, part);
    }
    entry->value = yaml_value(setting.binding.shape, setting.binding.read());
  }
  std::string text;
  write(root, "", text);
  return text;
}

}  // namespace lockstep::config

#include "lockstep/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/config/scalar_text.h"
#include "lockstep/config/setting.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

// The author of a recipe can break it, a user of its flags cannot.
void require(bool condition, const std::string& what) {
  if (condition) return;
  throw ConfigError("a program describes its settings wrongly: " + what);
}

bool is_name(std::string_view word) {
  return !word.empty() && word[0] != '-' &&
         std::all_of(word.begin(), word.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                  c == '_' || c == '-';
         });
}

bool is_bool(const Setting& setting) {
  return setting.binding.kind == ScalarKind::kBool;
}

// Whether the path lies in the section.
bool is_inside(std::string_view path, const std::string& section) {
  return path.starts_with(section + ".");
}

}  // namespace

void Options::add_setting(Setting setting) {
  const ScalarKind kind = setting.binding.kind;
  require(setting.details.choices.empty() || kind == ScalarKind::kText ||
              kind == ScalarKind::kInteger,
          "only texts and integers have choices: " + setting.name);
  take_default(setting);
  const size_t index = settings_.size();
  settings_.push_back(std::move(setting));
  const Setting& added = settings_.back();
  claim_word(index, added.name);
  for (const std::string& alias : added.details.aliases) {
    claim_word(index, alias);
  }
  check_key(index);
}

// Every word must mean one thing, also as the "no_..." form of a bool.
void Options::claim_word(size_t setting, const std::string& word) {
  require(is_name(word), "a setting cannot be named '" + word + "'");
  const std::string spelled = config::normalized(word);
  require(spelled != "config" && spelled != "help" && spelled != "help_all" &&
              spelled != "print_config",
          "this name belongs to the parser: " + word);
  require(!words_.contains(spelled), "two settings are named '" + word + "'");
  if (spelled.starts_with("no_")) {
    const auto opposite = words_.find(spelled.substr(3));
    require(opposite == words_.end() || !is_bool(settings_[opposite->second]),
            "'" + word + "' already turns a setting off");
  }
  require(!is_bool(settings_[setting]) || !words_.contains("no_" + spelled),
          "'no_" + word + "' is a setting of its own");
  words_.emplace(spelled, setting);
}

// A path names one setting or one section, never both.
void Options::check_key(size_t setting) const {
  const std::string key = config::normalized(settings_[setting].key());
  for (const std::string& part : base::split(key, '.')) {
    require(is_name(part), "not a YAML path: '" + key + "'");
  }
  for (const Setting& other : settings_) {
    if (&other == &settings_[setting]) continue;
    const std::string taken = config::normalized(other.key());
    require(taken != key, "two settings have the key " + key);
    const bool nested = is_inside(taken, key) || is_inside(key, taken);
    require(!nested, fmt::format("a key cannot be a section as well: {} and {}",
                                 key, taken));
  }
}

void Options::take_default(Setting& setting) const {
  setting.default_value = setting.binding.read();
  for (const SettingScalar& item : setting.default_value) {
    require(config::is_allowed(setting, item),
            "the default of " + setting.name + " is " +
                config::yaml_scalar(item) + ", not " +
                config::expectation(setting));
  }
}

void Options::add_alias(const std::string& name, const std::string& alias) {
  const size_t index = index_of(name);
  const auto known = words_.find(config::normalized(alias));
  if (known != words_.end() && known->second == index) return;
  claim_word(index, alias);
  settings_[index].details.aliases.push_back(alias);
}

void Options::set_key(const std::string& name, const std::string& key) {
  const size_t index = index_of(name);
  settings_[index].details.key = key;
  check_key(index);
}

void Options::set_group(const std::string& name, const std::string& group) {
  settings_[index_of(name)].details.group = group;
}

void Options::show_default(const std::string& name, const std::string& text) {
  Setting& setting = settings_[index_of(name)];
  take_default(setting);
  setting.details.shown_default = text;
}

void Options::refresh_defaults() {
  for (Setting& setting : settings_) {
    if (setting.source != Source::kDefault) continue;
    const SettingValue before = setting.default_value;
    take_default(setting);
    // It described the old default.
    if (setting.default_value != before) setting.details.shown_default.clear();
  }
}

bool Options::has(std::string_view name) const {
  return words_.contains(config::normalized(name));
}

Source Options::source(std::string_view name) const {
  return settings_[index_of(name)].source;
}

bool Options::was_given(std::string_view name) const {
  return source(name) != Source::kDefault;
}

void Options::reset(std::string_view name) {
  Setting& setting = settings_[index_of(name)];
  setting.binding.write(setting.default_value);
  setting.source = Source::kDefault;
}

std::string Options::value_text(std::string_view name) const {
  const Binding& binding = settings_[index_of(name)].binding;
  return config::yaml_value(binding.shape, binding.read());
}

void Options::assign(std::span<const Assignment> assignments) {
  for (const Assignment& assignment : assignments) {
    Setting& setting = settings_.at(assignment.setting);
    setting.binding.write(assignment.value);
    setting.source = assignment.source;
  }
}

size_t Options::index_of(std::string_view name) const {
  const auto found = words_.find(config::normalized(name));
  require(found != words_.end(),
          "no setting is named '" + std::string(name) + "'");
  return found->second;
}

}  // namespace lockstep

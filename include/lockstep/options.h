// One description of settings that feeds flags, YAML, help and documents.
//
// Not thread-safe. A mistake in the description itself (a name used twice, a
// default outside its own limits) is a bug and throws InternalError.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/setting.h"
#include "lockstep/config/value.h"

namespace lockstep {

// A checked value that is about to go into the variable of a setting.
struct Assignment {
  size_t setting = 0;  // Index into Options::settings().
  SettingValue value = {};
  Source source = Source::kDefault;
};

// Settings, each bound to a variable that outlives this object. Values at the
// time of binding are the defaults.
class Options {
 public:
  // T: bool, int64_t, double, std::string, std::optional of those,
  // std::vector<int64_t|double|std::string>. Names consist of letters, digits,
  // '_' and '-'; "config", "help" and "print_config" are taken.
  template <typename T>
  void add(const std::string& name, T& target, const std::string& help,
           const OptionDetails& details = {}) {
    add_setting({.name = name,
                 .help = help,
                 .details = details,
                 .binding = bind_value(target)});
  }

  // The following three take the name or an alias of an added setting.
  // A recipe's own word for a common setting; one it already has is fine.
  void add_alias(const std::string& name, const std::string& alias);
  // The YAML path: "data.batch_size".
  void set_key(const std::string& name, const std::string& key);
  void set_group(const std::string& name, const std::string& group);

  // What help and documents show as the default, where that depends on other
  // settings. The variable's current value is the default itself.
  void show_default(const std::string& name, const std::string& text);

  // Back to the default, as if it had not been given.
  void reset(std::string_view name);

  // The variables' current values become the defaults, after a program changed
  // them; help then shows the value in place of shown_default. Settings that a
  // file or flag gave keep their default.
  void refresh_defaults();

  // By name or alias; '-' equals '_'. All but has() throw InternalError for a
  // name that was never added.
  bool has(std::string_view name) const;
  Source source(std::string_view name) const;
  bool was_given(std::string_view name) const;          // Not kDefault.
  std::string value_text(std::string_view name) const;  // As YAML.

  // In the order of add().
  const std::vector<Setting>& settings() const { return settings_; }
  // Names and aliases, in the normalized spelling, with the setting's index.
  const std::map<std::string, size_t, std::less<>>& words() const {
    return words_;
  }

  // Writes the variables, in order. The values must have been checked.
  void assign(std::span<const Assignment> assignments);

 private:
  void add_setting(Setting setting);
  size_t index_of(std::string_view name) const;
  void claim_word(size_t setting, const std::string& word);
  void check_key(size_t setting) const;
  void take_default(Setting& setting) const;

  std::vector<Setting> settings_;
  std::map<std::string, size_t, std::less<>> words_;
};

}  // namespace lockstep

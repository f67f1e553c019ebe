// One setting: its names, its meaning, its limits and the variable behind it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/value.h"

namespace lockstep {

struct OptionDetails {
  // Other flag names of the same meaning, without dashes.
  std::vector<std::string> aliases = {};
  // YAML path when it is not the name: "data.batch_size".
  std::string key = {};
  // Allowed values of a text or integer (or of each item of a list).
  std::vector<std::string> choices = {};
  std::optional<double> minimum = {};  // For numbers.
  std::optional<double> maximum = {};
  std::string group = {};  // Heading in help and docs.
  // Text for help when the default is computed ("all GPUs").
  std::string shown_default = {};
  // Belongs to one start of the program: to_yaml() leaves it out.
  bool once = false;
  // While that other setting has a value and this one was not given, this one
  // follows from it: to_yaml() leaves it out.
  std::string follows = {};
};

// Where a setting has its value from.
enum class Source { kDefault, kFile, kFlag };

struct Setting {
  std::string name = {};
  std::string help = {};
  OptionDetails details = {};
  Binding binding = {};
  SettingValue default_value = {};
  Source source = Source::kDefault;

  // The YAML path.
  const std::string& key() const;
};

// The one spelling that names are compared by: '-' becomes '_'.
std::string normalized(std::string_view name);

// What a user has to write: "an integer of at least 1", "one of adam, sgd",
// "a list of numbers".
std::string expectation(const Setting& setting);

// The text as one value (or item) of the setting; no value when it has the
// wrong type, is out of range or not among the choices.
std::optional<SettingScalar> parse_item(const Setting& setting,
                                        std::string_view text);

// Whether limits and choices hold.
bool is_allowed(const Setting& setting, const SettingScalar& item);

// Throws ConfigError "<where>: expected <expectation>, got <what>".
[[noreturn]] void refuse(const Setting& setting, std::string_view where,
                         std::string_view what);

// The same for a text that parse_item() did not take, which is shown in quotes.
[[noreturn]] void refuse_text(const Setting& setting, std::string_view where,
                              std::string_view text);

}  // namespace lockstep

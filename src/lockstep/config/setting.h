// Settings as text: names, what a user may write, and refusals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/options.h"

namespace lockstep::config {

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

}  // namespace lockstep::config

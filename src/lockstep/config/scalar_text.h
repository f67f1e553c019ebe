// Scalars as text and back, the same for flags and YAML.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/options.h"

namespace lockstep::config {

// The whole text must be the scalar. Integers may be written 2e5 when that is
// integral; numbers may be inf and nan, with YAML's dot or without; a text is
// taken as it is.
std::optional<SettingScalar> parse_scalar(ScalarKind kind,
                                          std::string_view text);

// true, false, yes, no, on, off, 1, 0, in any case.
std::optional<bool> parse_bool(std::string_view text);

// none or null, in any case: what clears an optional.
bool is_none(std::string_view text);

// As a YAML scalar that is read back as the same value, by YAML 1.1 readers
// too. Texts are quoted where they could be taken for something else.
std::string yaml_scalar(const SettingScalar& scalar);

// "null" for an optional without value, "[1, 2]" for a list.
std::string yaml_value(ValueShape shape, const SettingValue& value);

// A user's text in single quotes for an error message: one line, not too long.
std::string shown(std::string_view text);

}  // namespace lockstep::config

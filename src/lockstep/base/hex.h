// Bytes as hexadecimal digits, two each.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::base {

std::string to_hex(std::string_view bytes);
// No value for a text that to_hex() does not make.
std::optional<std::string> from_hex(std::string_view text);

}  // namespace lockstep::base

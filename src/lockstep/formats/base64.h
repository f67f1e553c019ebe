// Bytes as printable text, for images inside SVG files and terminals.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::formats {

// With padding, in one line.
std::string to_base64(std::string_view bytes);

}  // namespace lockstep::formats

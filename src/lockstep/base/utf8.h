// UTF-8: checking it, and bytes hidden in text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::base {

bool is_utf8(std::string_view text);

// Bytes of the code point that a text begins with; 0 when it is not valid.
size_t code_point_size(std::string_view text);

// The text with U+FFFD in place of every byte that is not UTF-8: for formats
// that allow nothing else.
std::string as_utf8(std::string_view text);

// Each code point as one byte; no value when one does not fit or the text is
// not UTF-8. Protocol 2 writes Python's bytes as such a text.
std::optional<std::string> latin1_from_utf8(std::string_view text);

// The reverse.
std::string utf8_from_latin1(std::string_view bytes);

}  // namespace lockstep::base

// Forms of Unicode text that tokenizers need.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::text {

// The text with one U+FFFD for every longest piece that begins a code point but
// does not finish it, as the Unicode standard recommends and Rust and Python
// do.
std::string lossy_utf8(std::string_view bytes);

// Normalization form C of valid UTF-8.
std::string to_nfc(std::string_view text);

// Bytes of the white space (the property White_Space) that valid UTF-8 begins
// or ends with.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

}  // namespace lockstep::text

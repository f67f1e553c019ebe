// Text of unknown origin, made safe to show on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::base {

// What a terminal obeys or that changes the order of what it shows becomes an
// escape: control characters (C0, DEL, C1), bytes that are not UTF-8, line and
// paragraph separators, and marks of writing direction. "\x1b[2J" becomes
// "\\x1b[2J", U+202E "\\u202e". The result is UTF-8.

// One line: line feeds and tabs are escaped too.
std::string printable_line(std::string_view text);

// The same, cut behind `most_bytes` of the text with "..." at the end.
std::string printable_line(std::string_view text, size_t most_bytes);

// Lines: line feeds and tabs stay.
std::string printable_text(std::string_view text);

}  // namespace lockstep::base

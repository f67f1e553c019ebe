// Properties of the terminal behind a stream.
#pragma once

#include "lockstep/base/environment.h"

namespace lockstep::base {

// `lockstep run` sets it to the width of the terminal to which it forwards a
// worker's output.
constexpr const char* kTerminalColumnsVariable = "LOCKSTEP_TERMINAL_COLUMNS";

// From the cursor to the end of the line.
constexpr const char* kEraseToEnd = "\x1b[K";

// Current width; 0 when the stream is not a terminal, or cannot rewrite a line
// (TERM is dumb or unset). 80 for a terminal of unknown width. For a pipe:
// LOCKSTEP_TERMINAL_COLUMNS; throws ConfigError when that is not a number.
int terminal_columns(int fd, const Environment& environment);

// Whether the locale (LC_ALL, else LC_CTYPE, else LANG) is one of UTF-8.
bool has_utf8_locale(const Environment& environment);

}  // namespace lockstep::base

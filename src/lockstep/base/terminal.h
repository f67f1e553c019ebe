// What is known of the terminal behind a stream.
#pragma once

#include "lockstep/base/environment.h"

namespace lockstep {

// By it `lockstep run` tells a worker the width of the terminal to which it
// hands on what it reads from the worker's pipe.
constexpr const char* kTerminalColumnsVariable = "LOCKSTEP_TERMINAL_COLUMNS";

// From the cursor to the end of the line.
constexpr const char* kEraseToEnd = "\x1b[K";

// Its width now; 0 when the stream is no terminal, or one that cannot rewrite a
// line (TERM is dumb or unset). 80 for a terminal that does not tell. A pipe is
// as wide as LOCKSTEP_TERMINAL_COLUMNS says; throws ConfigError when that is no
// number.
int terminal_columns(int fd, const Environment& environment);

// Whether the locale (LC_ALL, else LC_CTYPE, else LANG) is one of UTF-8.
bool has_utf8_locale(const Environment& environment);

}  // namespace lockstep

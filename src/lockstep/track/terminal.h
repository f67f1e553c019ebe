// What is known of the terminal behind a stream.
#pragma once

#include "lockstep/base/environment.h"

namespace lockstep {

// Its width now; 0 when the stream is no terminal, or one that cannot rewrite a
// line (TERM is dumb or unset). 80 for a terminal that does not tell.
int terminal_columns(int fd, const Environment& environment);

// Whether the locale (LC_ALL, else LC_CTYPE, else LANG) is one of UTF-8.
bool has_utf8_locale(const Environment& environment);

}  // namespace lockstep

// The process's own output and error stream for a Console.
#pragma once

#include "lockstep/base/environment.h"
#include "lockstep/track/console.h"

namespace lockstep::track {

// Writes to descriptors 1 and 2; width and UTF-8 as base/terminal.h finds them.
// For programs: the library itself never prints.
ConsoleOutput standard_streams(const base::Environment& environment);

}  // namespace lockstep::track

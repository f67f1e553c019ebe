// Worker programs that may be started before any rank needs them
// (base/spare.h).
#pragma once

#include <string>
#include <vector>

namespace lockstep::app {

// The words behind the program's name. A spare process returns from here as the
// rank that it becomes, with that rank's words, environment and streams, as if
// it had been started with them, or ends with its launcher. Called first in
// main(): there is one thread, and nothing was printed.
std::vector<std::string> arguments_of(int count, char** values);

}  // namespace lockstep::app

// The frame around a program's main(): errors become words, an error file and
// an exit code.
#pragma once

#include <functional>

namespace lockstep {

// Runs `body`. On an error: writes its text to stderr with the rank in front,
// tells the launcher (error file), and returns the exit code of base/error.h;
// else 0.
//
//   int main() { return lockstep::run_program([] { ... }); }
int run_program(const std::function<void()>& body);

}  // namespace lockstep

// Wraps a program's main(): errors become a message, an error file and an exit
// code.
#pragma once

#include <functional>

#include "lockstep/export.h"

namespace lockstep {

class Recipe;

// Runs `body`. On an error: writes its message to stderr, prefixed with the
// rank, writes the launcher's error file, and returns the exit code of
// lockstep/error.h; else 0. A crash leaves its stack for the launcher's report,
// or on stderr.
//
//   int main() { return lockstep::run_program([] { ... }); }
LOCKSTEP_EXPORT int run_program(const std::function<void()>& body);

// The whole main() of a program that is one recipe: the flags of lockstep
// train, and its exit codes. A first word "train", "eval", "sample" or
// "prepare", with or without the recipe's name after it, chooses the command;
// so the program can also replace lockstep-worker.
//
//   int main(int count, char** values) {
//     MyRecipe recipe;
//     return lockstep::recipe_main(count, values, recipe);
//   }
LOCKSTEP_EXPORT int recipe_main(int count, char** values, Recipe& recipe);

}  // namespace lockstep

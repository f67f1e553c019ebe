// The commands of `lockstep`, for its usage, man pages and completions.
#pragma once

#include <span>
#include <string>

namespace lockstep::launch {

struct Command {
  const char* name;
  const char* usage;  // What follows the name: "RECIPE [flags]".
  const char* help;
};

std::span<const Command> commands();

// The commands, one line each.
std::string commands_help();

}  // namespace lockstep::launch

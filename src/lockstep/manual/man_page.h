// Man pages in the macros of man(7).
#pragma once

#include <string>

#include "lockstep/manual/description.h"

namespace lockstep::manual {

// lockstep(1): the commands and the recipes.
std::string man_page(const Program& program);

// lockstep-train(1): one command with its flags.
std::string man_page(const Program& program, const Command& command);

}  // namespace lockstep::manual

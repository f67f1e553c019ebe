// Completion scripts: they hold all words, so that no program runs while the
// user types.
#pragma once

#include <string>

#include "lockstep/manual/description.h"

namespace lockstep::manual {

std::string bash_completion(const Program& program);
std::string zsh_completion(const Program& program);
std::string fish_completion(const Program& program);

}  // namespace lockstep::manual

// The description of `lockstep`: its commands, the launcher's options and the
// settings of all recipes.
#pragma once

#include <string>
#include <vector>

#include "lockstep/config/render.h"
#include "lockstep/manual/description.h"

namespace lockstep::app {

manual::Program describe_program();

// The launcher's flags in the help of a recipe.
std::vector<config::HelpRow> launching_rows();

// Names of all flags of the launcher.
std::vector<std::string> launch_flags();

}  // namespace lockstep::app

// Generates docs/reference/flags.md from the settings of the recipes.
#pragma once

#include <string>

namespace lockstep::app {

std::string flags_document();

}  // namespace lockstep::app

// docs/reference/flags.md, from the recipes' own descriptions.
#pragma once

#include <string>

namespace lockstep::app {

std::string flags_document();

}  // namespace lockstep::app

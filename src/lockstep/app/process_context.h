// The streams and the environment of this process, for commands on recipes.
#pragma once

#include "lockstep/cli/commands.h"

namespace lockstep::app {

cli::CommandContext process_context();

}  // namespace lockstep::app

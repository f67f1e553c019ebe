// `lockstep launch`: torch.distributed.launch, the older name of torchrun.
#pragma once

#include <span>
#include <string>

#include "lockstep/launch/options.h"

namespace lockstep::launch {

// As parse_run_options(). Without --use-env the program also gets
// --local-rank=N, as its first argument; a Lockstep worker, whose first word is
// a command, as its last. Throws ConfigError.
RunOptions parse_launch_options(std::span<const std::string> arguments,
                                const base::Environment& environment);

std::string launch_help();

}  // namespace lockstep::launch

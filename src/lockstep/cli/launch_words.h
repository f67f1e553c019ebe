// Launch flags of the guides: --world_size, --dist_url, ...
#pragma once

#include "lockstep/base/environment.h"
#include "lockstep/train_config.h"

namespace lockstep::cli {

// Throws ConfigError if flags contradict the launcher's environment, or,
// without a launcher, describe more than one process.
void check_launch_words(const LaunchWords& words, const base::Environment& env);

}  // namespace lockstep::cli

// Launch flags of the guides: --world_size, --dist_url, ...
#pragma once

#include "lockstep/base/environment.h"
#include "lockstep/train_config.h"

namespace lockstep::cli {

// A launched world is as the environment says; flags that say otherwise are an
// error. Without an environment the flags give a world of one.
void check_launch_words(const LaunchWords& words, const base::Environment& env);

}  // namespace lockstep::cli

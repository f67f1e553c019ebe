// `lockstep verify-resume`: does a training that is stopped and resumed end as
// one that is not?
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/environment.h"

namespace lockstep::doctor {

// [--steps N] RECIPE [flags]. Trains N steps; trains half of them, ends, and
// resumes; compares checkpoints and metrics bit by bit. Returns 0 when they are
// equal, 1 when they differ (the runs are kept then). Throws ConfigError for
// wrong words, and Error when a training fails.
int verify_resume_command(std::span<const std::string> arguments,
                          const base::Environment& environment,
                          const std::function<void(std::string_view)>& write);

}  // namespace lockstep::doctor

// `lockstep doctor`: checks before a job runs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/environment.h"

namespace lockstep::doctor {

// Writes lines as they are found. Returns the exit code. Throws ConfigError for
// wrong words; whatever is wrong with the machine is a line.
int doctor_command(std::span<const std::string> arguments,
                   const base::Environment& environment,
                   const std::function<void(std::string_view)>& write);

}  // namespace lockstep::doctor

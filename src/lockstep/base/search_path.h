// Finding programs by name.
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/environment.h"

namespace lockstep::base {

// A regular file that this user may execute.
bool is_executable(const std::string& path);

// The first executable of that name in the folders of PATH.
std::optional<std::string> find_on_path(const std::string& program,
                                        const Environment& environment);

}  // namespace lockstep::base

// Arguments and environment in the form that exec() takes.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/environment.h"

namespace lockstep::base {

// Points into `texts`, with a null pointer at the end.
std::vector<char*> pointers_to(const std::vector<std::string>& texts);

// "NAME=value".
std::vector<std::string> entries_of(const Environment& environment);

}  // namespace lockstep::base

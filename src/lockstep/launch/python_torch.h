// Asks a Python where its torch is.
#pragma once

#include <string>

#include "lockstep/base/environment.h"

namespace lockstep::launch {

// The folder of the package torch that `python` (a path, or a name on PATH)
// would import, without importing it: that takes a second. Empty when there is
// no such Python or no torch. Blocks until the Python ends.
std::string torch_folder_of_python(const std::string& python,
                                   const base::Environment& environment);

}  // namespace lockstep::launch

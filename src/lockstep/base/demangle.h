// Names of C++ functions as they are written.
#pragma once

#include <string>

namespace lockstep::base {

// At most 200 characters: templates of ATen are long. Other names are returned
// as they are.
std::string demangled(const std::string& name);

}  // namespace lockstep::base

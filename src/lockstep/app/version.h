// What is installed: version, commit, the torch that is found, folders.
#pragma once

#include <filesystem>
#include <string>

#include "lockstep/base/environment.h"

namespace lockstep::app {

// "lockstep 0.2.0 (COMMIT)", then lines with the versions of torch, CUDA and
// NCCL; where the torch does not fit, what to install.
std::string version_text(const base::Environment& environment,
                         const std::filesystem::path& program_folder);

// The folder of the CMake package, for `cmake -DLockstep_DIR=`. Throws
// ConfigError when it is not installed beside the programs.
std::string cmake_folder(const std::filesystem::path& program_folder);

// The folder of the torch that programs load. Throws ConfigError.
std::string torch_folder(const base::Environment& environment,
                         const std::filesystem::path& program_folder);

}  // namespace lockstep::app

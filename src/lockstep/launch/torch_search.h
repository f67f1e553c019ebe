// Which torch the worker loads.
//
// lib/lockstep/torch.json beside the programs names the build that they were
// linked with. Programs of a build tree or of `cmake --install` find it by
// their run path; those of a package name no folder, and the launcher looks for
// one.
#pragma once

#include <filesystem>
#include <optional>

#include "lockstep/base/environment.h"
#include "lockstep/launch/torch_build.h"

namespace lockstep::launch {

struct LinkedTorch {
  TorchBuild build;                    // its folder is empty in a package
  bool in_python_environment = false;  // the programs are those of a wheel
};

// No value for programs without libtorch. Throws FormatError on a damaged file.
std::optional<LinkedTorch> linked_torch(
    const std::filesystem::path& program_folder);

// LOCKSTEP_TORCH, else the folder the programs were linked with, else the torch
// that a Python imports: for the programs of a wheel the python3 beside them,
// then those of VIRTUAL_ENV and PATH. Nothing is imported or loaded. Throws
// ConfigError when LOCKSTEP_TORCH holds no torch.
std::optional<TorchBuild> find_torch(
    const base::Environment& environment,
    const std::filesystem::path& program_folder);

// The environment in which `worker` finds its libraries: with torch's folders
// in LD_LIBRARY_PATH where its run path does not name them. Throws ConfigError
// when there is no torch, or one that does not fit.
base::Environment with_torch(base::Environment environment,
                             const std::filesystem::path& worker);

}  // namespace lockstep::launch

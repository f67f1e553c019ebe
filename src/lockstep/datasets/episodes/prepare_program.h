// `lockstep prepare atlas --input ...`, which is the work of lockstep-prepare:
// a separate program, so that this library links neither HDF5 nor Arrow.
#pragma once

#include <string>
#include <vector>

namespace lockstep::episodes {

// Whether the arguments of `lockstep prepare atlas` name a data set to convert:
// there is --from or --input among them.
bool is_for_prepare_program(const std::vector<std::string>& arguments);

// Replaces this process by `lockstep-prepare atlas ARGUMENTS`: the one that
// LOCKSTEP_PREPARE names, else the one in the folder of the running program,
// else one on PATH. Output, signals and exit code are its own. Returns only by
// ConfigError, when there is none that can be started.
[[noreturn]] void become_prepare_program(
    const std::vector<std::string>& arguments);

}  // namespace lockstep::episodes

// Where lockstep-worker and the other programs lie, and becoming one.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "lockstep/base/environment.h"

namespace lockstep::launch {

// LOCKSTEP_WORKER (a path, or a name on PATH), else lockstep-worker in the
// launcher's own folder, else on PATH. Throws ProgramError with what to do.
std::string find_worker(const base::Environment& environment,
                        const std::filesystem::path& launcher_folder);

// A program of Lockstep, such as lockstep-plot, in the launcher's own folder,
// else on PATH. Throws ProgramError with what to do.
std::string find_companion(const std::string& name,
                           const base::Environment& environment,
                           const std::filesystem::path& launcher_folder);

// The folder of the running program, symbolic links followed. Throws IoError.
std::filesystem::path own_folder();

// Replaces this process by the program. Returns only by ProgramError.
[[noreturn]] void become_program(const std::string& program,
                                 std::span<const std::string> arguments,
                                 const base::Environment& environment);

}  // namespace lockstep::launch

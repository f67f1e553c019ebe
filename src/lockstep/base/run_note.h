// Where a worker's run folder is: rank 0 notes it beside its error file, and
// the launcher leaves the verdict on a failed job there.
#pragma once

#include <filesystem>
#include <optional>

#include "lockstep/base/environment.h"

namespace lockstep::base {

constexpr const char* kRunNoteFile = "run_folder";
constexpr const char* kVerdictFile = "verdict.json";

// Does nothing unless `lockstep run` started this process. Never throws: the
// training matters more.
void note_run_folder(const Environment& environment,
                     const std::filesystem::path& folder) noexcept;

// `folder`: of the worker's error file. No value unless a worker noted one that
// is there.
std::optional<std::filesystem::path> noted_run_folder(
    const std::filesystem::path& folder);

}  // namespace lockstep::base

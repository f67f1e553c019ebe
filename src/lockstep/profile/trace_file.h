// Traces in Chrome's format, which Perfetto opens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "lockstep/profile/timeline.h"

namespace lockstep::profile {

// `{"traceEvents":[...]}` of one rank: its process is the rank, threads and
// streams are its threads. Times are counted from `zero_ns`, which all ranks
// share.
std::string trace_text(const Recording& recording, int rank, int64_t zero_ns);

// One file of those that trace_text() made; files that are missing or not such
// are left out. Returns how many are in it. Throws IoError.
int merge_traces(std::span<const std::filesystem::path> files,
                 const std::filesystem::path& merged);

}  // namespace lockstep::profile

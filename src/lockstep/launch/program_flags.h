// Flags of the program that concern the launcher as well.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/launch/options.h"

namespace lockstep::launch {

// The value of a flag among the arguments of a program: `--device cpu`,
// `--device=cpu`, spelled with - or _. The last one counts; nothing behind `--`
// does.
std::optional<std::string> find_flag(std::span<const std::string> arguments,
                                     std::string_view name);

// Whether PROGRAM is lockstep-worker: started by `lockstep train`, or named so.
bool is_own_worker(const RunOptions& options);

}  // namespace lockstep::launch

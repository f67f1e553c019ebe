// Names and meanings of signals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::base {

// "SIGKILL"; "signal 77" for a number without a name.
std::string signal_name(int number);

// Accepts "SIGTERM" and "TERM".
std::optional<int> parse_signal(std::string_view name);

// What a death by this signal usually means: "killed from outside, or by the
// kernel's out-of-memory killer". Empty when there is nothing to add to the
// name.
std::string signal_meaning(int number);

}  // namespace lockstep::base

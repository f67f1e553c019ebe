// Reading environment variables, with errors that name the variable.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::base {

// The name of this host, "?" when it has none.
std::string host_name();

// The variables a program looks at. A copy, so that tests can pass their own.
using Environment = std::map<std::string, std::string, std::less<>>;

// A copy of this process's environment.
Environment process_environment();

// Absent and empty are the same: a variable exported empty counts as unset.
std::optional<std::string> find(const Environment& environment,
                                std::string_view name);

// Throws ConfigError naming the variable when its value is not an integer.
std::optional<int64_t> find_integer(const Environment& environment,
                                    std::string_view name);

constexpr double kLongestTimeoutSeconds = 30.0 * 24 * 3600;

// The timeout of collectives in seconds: TORCH_DISTRIBUTED_TIMEOUT, else
// NCCL_TIMEOUT, else 600. `lockstep run --timeout` exports the former. Throws
// ConfigError on a bad value.
double collective_timeout_seconds(const Environment& environment);

}  // namespace lockstep::base

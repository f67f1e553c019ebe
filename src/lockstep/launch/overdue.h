// Ranks that stay in a collective beyond its limit.
#pragma once

#include <optional>
#include <span>

#include "lockstep/launch/verdict.h"

namespace lockstep::launch {

// The rank furthest beyond its limit, as a failure, when that is 5 s or more: a
// worker that can times out by itself before.
std::optional<Failure> find_overdue(std::span<const RankSnapshot> ranks,
                                    double timeout_seconds);

}  // namespace lockstep::launch

// The result of a profile in numbers: for readers, and for `lockstep board`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/profile/timeline.h"

namespace lockstep::profile {

struct RankProfile {
  int rank = 0;
  int64_t num_steps = 0;
  double step_ms = 0;    // While it was recorded.
  double before_ms = 0;  // Time of a step before; 0: not measured.
  TimeByKind time = {};
};

// One line of JSON, for the other ranks and for summary.json.
std::string profile_json(const RankProfile& profile);
// Throws FormatError.
RankProfile parse_profile(std::string_view json);

// summary.json of all ranks.
std::string summary_json(std::span<const RankProfile> ranks,
                         const std::string& device);

// Rows by kind: milliseconds per step and percent of all ranks together, and
// the ranks with least and most; then the cost of recording. Several lines,
// without the last line's end.
std::string profile_table(std::span<const RankProfile> ranks);

}  // namespace lockstep::profile

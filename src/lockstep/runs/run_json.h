// Runs as JSON, for programs and for the page of the board.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/runs/rank_table.h"
#include "lockstep/runs/run_summary.h"

namespace lockstep::runs {

// A text in quotes; bytes that are not UTF-8 are replaced.
std::string json_text(std::string_view text);
// "null" for what is not finite.
std::string json_number(double value);

// One object.
std::string summary_json(const RunSummary& run);
std::string ranks_json(std::span<const RankRow> rows);

// "[a,b]"
std::string json_list(std::span<const std::string> items);

}  // namespace lockstep::runs

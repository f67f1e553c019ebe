// Names of a run's files; "{step}" and "{epoch}" in them stand for numbers.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::engine {

// "checkpoint_step_{step}.pt" -> "checkpoint_step_120.pt"
std::string file_name(const std::string& pattern, int64_t step, int64_t epoch);

// Throws ConfigError for an absolute OutputFile::name or one with "..".
void require_below_folder(const std::string& name);

// file_name() of an OutputFile. Throws ConfigError as above.
std::string output_name(const std::string& pattern, int64_t step,
                        int64_t epoch);

// The shell pattern of all such names: "checkpoint_step_+([0-9]).pt".
std::string file_pattern(const std::string& name);

}  // namespace lockstep::engine

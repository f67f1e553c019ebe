// One row per option of `lockstep run`; parser and help text read the same
// table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/launch/options.h"

namespace lockstep::launch {

struct RunOption {
  const char* name;        // "log-dir"; --log_dir is the same option
  char short_name;         // 'r' for -r, or '\0'
  const char* value_name;  // "FOLDER"; nullptr for a flag without value
  const char* help;        // nullptr: accepted, not shown
  // Throws ConfigError. A flag gets "1", or "0" from PET_<NAME>=0.
  void (*apply)(RunOptions& options, const std::string& value);
};

std::span<const RunOption> run_option_table();

// By its long name without dashes, in either spelling; nullptr: no such option.
const RunOption* find_run_option(std::string_view name);

// The options with this prefix of their long name, one per meaning.
std::vector<const RunOption*> find_run_options_beginning(
    std::string_view beginning);

// Its lines of a help text.
std::string help_row(const RunOption& option);

}  // namespace lockstep::launch

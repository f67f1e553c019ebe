// One row per option of `lockstep run`; parser and help text read the same
// table.
#pragma once

#include <span>
#include <string>

#include "lockstep/launch/options.h"

namespace lockstep {

struct RunOption {
  const char* name;        // "log-dir"; --log_dir is the same option
  char short_name;         // 'r' for -r, or '\0'
  const char* value_name;  // "FOLDER"; nullptr for a flag without value
  const char* help;        // nullptr: accepted, not shown
  // Throws ConfigError. A flag gets "1", or "0" from PET_<NAME>=0.
  void (*apply)(RunOptions& options, const std::string& value);
};

std::span<const RunOption> run_option_table();

}  // namespace lockstep

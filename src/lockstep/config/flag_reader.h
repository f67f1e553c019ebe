// From the words of a command line to checked values of settings.
#pragma once

#include <string>
#include <vector>

#include "lockstep/options.h"

namespace lockstep::config {

struct ReadFlags {
  bool help = false;
  bool help_all = false;
  bool print_config = false;
  std::vector<std::string> config_files = {};
  std::vector<std::string> positionals = {};
  std::vector<Assignment> assignments = {};
};

// The grammar is described in parse.h. `launch_flags` are suggested in place of
// an unknown flag, as the settings' own are. Throws ConfigError.
ReadFlags read_flags(const Options& options,
                     const std::vector<std::string>& arguments,
                     const std::vector<std::string>& launch_flags = {});

}  // namespace lockstep::config

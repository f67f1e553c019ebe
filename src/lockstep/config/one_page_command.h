// Commands whose flags fit on one page of help: lockstep prepare scribble.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/options.h"

namespace lockstep::config {

// Gives the settings their values as parse_command() does. Returns the text
// that --help or --print_config asks for, in place of running; else no value.
// `usage` begins with the command: "lockstep prepare scribble [flags]". Throws
// ConfigError, also for a word that belongs to no flag.
std::optional<std::string> parse_one_page_command(
    Options& options, const std::vector<std::string>& arguments,
    std::string_view usage);

}  // namespace lockstep::config

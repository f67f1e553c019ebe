// Settings as text: help, a complete YAML file, documentation.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/options.h"

namespace lockstep::config {

// For --help: "usage: <usage>" and then every setting by group, 100 columns
// wide, with default, choices and aliases.
std::string help_text(const Options& options, std::string_view usage);

// For --print_config: every setting with its current value, less those of one
// start (once) and those that follow from others. Reading it back gives exactly
// the same values.
std::string to_yaml(const Options& options);

// Every setting with its current value, less those of one start, as one JSON
// object.
std::string to_json(const Options& options);

// For docs: a heading and a table per group.
std::string to_markdown(const Options& options);

}  // namespace lockstep::config

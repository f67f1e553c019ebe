// From a YAML text to checked values of settings.
//
// A key is matched by its full path ("data.batch_size", nested or with dots).
// The plain name or an alias may stand for it at top level and inside the
// setting's own section; a setting whose key has no section is found inside
// any one section ("training: {lr: 1e-3}"). '-' equals '_'.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "lockstep/options.h"

namespace lockstep::config {

// Both throw ConfigError and change nothing.
std::vector<Assignment> read_yaml_text(const Options& options,
                                       std::string_view text,
                                       std::string_view file_name);
std::vector<Assignment> read_yaml_file(const Options& options,
                                       const std::filesystem::path& path);

}  // namespace lockstep::config

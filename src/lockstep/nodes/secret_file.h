// The job's secret, from a file that only its owner can read.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::nodes {

// Without white space at its ends. Throws ConfigError, with what to do, for a
// file that is missing, readable by others, shorter than 16 bytes or longer
// than 4 KiB.
std::string read_secret_file(const std::filesystem::path& path);

}  // namespace lockstep::nodes

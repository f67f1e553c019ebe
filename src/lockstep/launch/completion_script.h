// `lockstep completion SHELL`.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace lockstep::launch {

// The completions of bash, zsh or fish, from the files that are installed with
// the program in ../share of its folder. Throws ConfigError for another shell
// or number of words, IoError when the file is missing.
std::string completion_script(std::span<const std::string> arguments,
                              const std::filesystem::path& program_folder);

}  // namespace lockstep::launch

// Data sets of other layouts: knowing them, and the command that converts them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::episodes {

struct PrepareCommand {
  std::string from = {};  // libero, lerobot or parquet
  std::filesystem::path input = {};
  std::filesystem::path output = {};
};

// `lockstep prepare atlas --from ...`, as a shell takes it.
std::string prepare_command_text(const PrepareCommand& command);

// The command that converts the data set in a folder to episodes; no value when
// the folder looks like none that can be converted.
std::optional<std::string> conversion_command(
    const std::filesystem::path& folder);

}  // namespace lockstep::episodes

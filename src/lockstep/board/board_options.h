// The command line of `lockstep board`.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace lockstep::board {

constexpr int kUsualPort = 6070;

struct BoardOptions {
  bool help = false;                  // Nothing else is checked.
  std::filesystem::path folder = {};  // Empty: runs, or the current one.
  std::string host = "127.0.0.1";
  int port = kUsualPort;  // 0: any that is free.
  bool needs_token = false;
  std::optional<std::filesystem::path> token_file = {};
};

// Throws ConfigError.
BoardOptions parse_board_options(std::span<const std::string> arguments);

std::string board_help();

}  // namespace lockstep::board

// The files of the page, which are part of the program: nothing is loaded from
// elsewhere.
#pragma once

#include <optional>
#include <string_view>

namespace lockstep::board {

struct Asset {
  std::string_view type = {};  // "text/html; charset=utf-8"
  std::string_view bytes = {};
};

// By its address: "/" or "/board.js". No value for any other.
std::optional<Asset> find_asset(std::string_view path);

}  // namespace lockstep::board

// The table of actions of an episode, as csv text.
//
// Free functions without state: safe to call from several threads at once.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::formats {

constexpr size_t kActionSize = 7;
constexpr std::array<std::string_view, kActionSize> kActionNames = {
    "x", "y", "z", "roll", "pitch", "yaw", "gripper"};

using Action = std::array<float, kActionSize>;

// Which columns hold an action: those named as above, in any order; when one of
// the names is missing, the first seven. Throws FormatError when there are
// fewer, or when they are numbers, so that the header is missing. `where` names
// the file.
std::array<size_t, kActionSize> action_columns(
    std::span<const std::string> header, const std::string& where);

// A header and one action per line; other columns may hold anything. Fields may
// be quoted, empty lines are skipped. `where` names the file in errors. Throws
// FormatError with the line for anything but a complete table of finite
// numbers.
std::vector<Action> parse_action_csv(std::string_view content,
                                     const std::string& where);

// With the shortest digits that give the same floats again.
std::string action_csv_text(std::span<const Action> actions);

}  // namespace lockstep::formats

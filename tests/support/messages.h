// What messages and outputs hold.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace lockstep::testing {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

inline void expect_in(const std::string& text, std::string_view part) {
  EXPECT_TRUE(contains(text, part)) << part << " not in:\n" << text;
}

inline void expect_not_in(const std::string& text, std::string_view part) {
  EXPECT_FALSE(contains(text, part)) << part << " in:\n" << text;
}

// The message of the `Expected` that the action throws; "accepted" when it
// throws nothing.
template <typename Expected, typename Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const Expected& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace lockstep::testing

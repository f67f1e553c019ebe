#include "lockstep/base/hex.h"

#include <gtest/gtest.h>

namespace lockstep::base {
namespace {

TEST(Hex, IsReadAsItWasWritten) {
  EXPECT_EQ(to_hex(std::string_view("\x00\x7f\x80\xff", 4)), "007f80ff");
  std::string all;
  for (int value = 0; value < 256; ++value) all += static_cast<char>(value);
  EXPECT_EQ(from_hex(to_hex(all)), all);
  EXPECT_EQ(from_hex(to_hex("")), "");
}

TEST(Hex, OtherTextsHaveNoBytes) {
  for (const char* text : {"0", "000", "0g", "g0", "0A", " 0", "0x", "-1"}) {
    EXPECT_EQ(from_hex(text), std::nullopt) << text;
  }
  EXPECT_EQ(from_hex(std::string_view("0\0", 2)), std::nullopt);
}

}  // namespace
}  // namespace lockstep::base

#include "lockstep/base/printable.h"

#include <gtest/gtest.h>

#include <string>

#include "lockstep/base/utf8.h"

namespace lockstep {
namespace {

using namespace std::string_literals;

TEST(Printable, OrdinaryTextStaysAsItIs) {
  const std::string text =
      "model.layers.0 \"gr\xc3\xbc\xc3\x9f\" \xe6\x97\xa5 \\";
  EXPECT_EQ(base::printable_line(text), text);
  EXPECT_EQ(base::printable_text("a\n\tb\n" + text), "a\n\tb\n" + text);
}

TEST(Printable, ControlCharactersBecomeEscapes) {
  EXPECT_EQ(base::printable_line("\x1b[2J\x1b]0;x\x07"s),
            "\\x1b[2J\\x1b]0;x\\x07");
  EXPECT_EQ(base::printable_line("a\nb\tc\rd\0e\x7f"s),
            "a\\nb\\tc\\rd\\x00e\\x7f");
  // C1 as code points and as single bytes, which old terminals obey too.
  EXPECT_EQ(base::printable_line("\xc2\x9b"
                                 "31m\x9b"
                                 "31m"),
            "\\x9b31m\\x9b31m");
  EXPECT_EQ(base::printable_text("a\nb\tc\r\x1b[0m"), "a\nb\tc\\r\\x1b[0m");
}

TEST(Printable, MarksOfDirectionBecomeEscapes) {
  EXPECT_EQ(base::printable_line("a\xe2\x80\xaetxt"), "a\\u202etxt");
  EXPECT_EQ(
      base::printable_line("\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8"),
      "\\u2066\\u200f\\u061c\\u2028");
}

TEST(Printable, EveryByteGivesUtf8WithoutControls) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string line = base::printable_line(all);
  EXPECT_TRUE(base::is_utf8(line));
  for (const char c : line) {
    EXPECT_GE(static_cast<unsigned char>(c), 0x20);
    EXPECT_NE(c, '\x7f');
  }
}

TEST(Printable, LongTextIsCutBetweenCodePoints) {
  EXPECT_EQ(base::printable_line("abcdef", 6), "abcdef");
  EXPECT_EQ(base::printable_line("abcdef", 3), "abc...");
  EXPECT_EQ(base::printable_line("ab\xe6\x97\xa5"
                                 "cd",
                                 3),
            "ab...");
  EXPECT_EQ(base::printable_line(std::string(1000, '\x80'), 2), "...");
}

}  // namespace
}  // namespace lockstep

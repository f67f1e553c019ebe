#include "lockstep/text/unicode.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/text/pattern.h"

namespace lockstep {
namespace {

using Pieces = std::vector<std::string_view>;

constexpr const char* kReplacement = "\xef\xbf\xbd";

// As Python's bytes.decode("utf-8", "replace") does.
TEST(LossyUtf8, ReplacesTheLongestBrokenPieces) {
  const std::string r = kReplacement;
  EXPECT_EQ(text::lossy_utf8("abc"), "abc");
  EXPECT_EQ(text::lossy_utf8("\xe4\xbd"), r);  // A code point cut short.
  EXPECT_EQ(text::lossy_utf8("\xe4\xbd"
                             "a"),
            r + "a");
  EXPECT_EQ(text::lossy_utf8("\xf0\x9f\x98"), r);
  EXPECT_EQ(text::lossy_utf8("\xed\xa0\x80"), r + r + r);  // A surrogate.
  EXPECT_EQ(text::lossy_utf8("\xc0\x80"), r + r);
  EXPECT_EQ(text::lossy_utf8("\x80\xff"), r + r);
}

TEST(Nfc, ComposesMarks) {
  EXPECT_EQ(text::to_nfc("e\xcc\x81"), "\xc3\xa9");
  EXPECT_EQ(text::to_nfc(std::string_view("a\0b", 3)),
            std::string_view("a\0b", 3));
  EXPECT_EQ(text::to_nfc(""), "");
}

TEST(WhiteSpace, IsFoundAtBothEnds) {
  EXPECT_EQ(text::leading_space(" \t\xe3\x80\x80x "), 5U);
  EXPECT_EQ(text::trailing_space("x\xc2\xa0\n"), 3U);
  EXPECT_EQ(text::trailing_space(" \n"), 2U);
  EXPECT_EQ(text::leading_space(""), 0U);
}

TEST(Pattern, CutsMatchesAndWhatLiesBetween) {
  const text::Pattern pattern(R"(\p{L}+|\s+(?!\S))");
  EXPECT_EQ(pattern.cut("ab1  \xc3\xa9 "),
            (Pieces{"ab", "1", " ", " ", "\xc3\xa9", " "}));
  EXPECT_EQ(pattern.cut(""), Pieces{});
  EXPECT_EQ(text::Pattern("x*").cut("axxb"), (Pieces{"a", "xx", "b"}));
  // U+180E is not white space.
  EXPECT_EQ(text::Pattern(R"(\s)")
                .cut("a\xe1\xa0\x8e"
                     "b")
                .size(),
            1U);
}

TEST(Pattern, RefusesWhatIsNoExpressionAndWhatTakesTooLong) {
  EXPECT_THROW(text::Pattern("(a"), FormatError);
  EXPECT_THROW(text::Pattern("(a+)+$").cut(std::string(4000, 'a') + "b"),
               FormatError);
}

}  // namespace
}  // namespace lockstep

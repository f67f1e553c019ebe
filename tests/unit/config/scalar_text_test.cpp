#include "lockstep/config/scalar_text.h"

#include <gtest/gtest.h>

#include "lockstep/base/utf8.h"

namespace lockstep {
namespace {

TEST(ScalarText, ValidUtf8) {
  for (const char* text :
       {"", "a", "\u007f", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000",
        "\uffff", "\U00010000", "\U0010ffff"}) {
    EXPECT_TRUE(base::is_utf8(text)) << text;
  }
}

TEST(ScalarText, InvalidUtf8) {
  for (const char* text :
       {"\x80", "\xc3", "\xc3(", "\xc1\xbf", "\xe2\x82", "\xe2(\xa1",
        "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xf0\x90\x80"}) {
    EXPECT_FALSE(base::is_utf8(text)) << ::testing::PrintToString(text);
  }
}

TEST(ScalarText, CharactersThatYamlForbidsAreEscaped) {
  const auto written = [](const std::string& text) {
    return config::yaml_scalar(SettingScalar(text));
  };
  EXPECT_EQ(written("\x01\x7f"), "\"\\x01\\x7f\"");
  EXPECT_EQ(written("\u0085\u009f\u00a0"), "\"\\x85\\x9f\u00a0\"");
  EXPECT_EQ(written("\u2028\u2029\ufeff"), "\"\\u2028\\u2029\\ufeff\"");
  EXPECT_EQ(written("a\n\t\"\\"), "\"a\\n\\t\\\"\\\\\"");
}

TEST(ScalarText, NumbersHaveADotForOtherYamlReaders) {
  const auto written = [](double number) {
    return config::yaml_scalar(SettingScalar(number));
  };
  EXPECT_EQ(written(1), "1.0");
  EXPECT_EQ(written(-0.0), "-0.0");
  EXPECT_EQ(written(1e-5), "1.0e-05");
  EXPECT_EQ(written(2.5e-7), "2.5e-07");
  EXPECT_EQ(written(1e20), "1.0e+20");
}

TEST(ScalarText, TextsInErrorsAreShortAndOfOneLine) {
  EXPECT_EQ(config::shown("a\nb\x1b[2J"), "'a\\nb\\x1b[2J'");
  EXPECT_EQ(config::shown(std::string(80, 'x')),
            "'" + std::string(80, 'x') + "'");
  EXPECT_EQ(config::shown(std::string(81, 'x')),
            "'" + std::string(80, 'x') + "...'");
}

}  // namespace
}  // namespace lockstep

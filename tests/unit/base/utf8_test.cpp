#include "lockstep/base/utf8.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Utf8, KnowsWellFormedText) {
  for (const char* text : {"", "plain", "gr\xc3\xbc\xc3\x9f", "\xe4\xbd\xa0",
                           "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(base::is_utf8(text)) << text;
  }
  for (const char* text :
       {"\x80", "\xc3", "\xc3(", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
        "\xf4\x90\x80\x80", "\xff", "\xe4\xbd"}) {
    EXPECT_FALSE(base::is_utf8(text)) << text;
  }
}

TEST(Utf8, BytesGoThroughTextAndBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::string text = base::utf8_from_latin1(bytes);
  EXPECT_TRUE(base::is_utf8(text));
  EXPECT_EQ(base::latin1_from_utf8(text), bytes);
  EXPECT_EQ(base::latin1_from_utf8("\xe4\xbd\xa0"), std::nullopt);
}

TEST(Utf8, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(base::as_utf8("loss \xc3\xa9"), "loss \xc3\xa9");
  EXPECT_EQ(base::as_utf8("a\xff\xc3"), "a\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(base::as_utf8(""), "");
}

}  // namespace
}  // namespace lockstep

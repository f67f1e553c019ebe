#include "lockstep/text/byte_tokenizer.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Ids = std::vector<int64_t>;

TEST(ByteTokenizer, GivesEveryByteItsOwnNumber) {
  const text::ByteTokenizer tokenizer;
  EXPECT_EQ(tokenizer.encode(std::string_view("a\0\xff", 3)),
            (Ids{97, 0, 255}));
  EXPECT_EQ(tokenizer.eos(), 256);
  EXPECT_EQ(tokenizer.pad(), 257);
  EXPECT_EQ(tokenizer.vocab_size(), 258);
}

TEST(ByteTokenizer, DecodesValidTextOnly) {
  const text::ByteTokenizer tokenizer;
  const std::string text = "caf\xc3\xa9";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  EXPECT_EQ(tokenizer.decode(Ids{97, 0xc3, 98, 256, 257, 9999, -1, 99}),
            "a\xef\xbf\xbd"
            "bc");
}

}  // namespace
}  // namespace lockstep

#include "lockstep/launch/streams.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

TEST(StreamMap, OneNumberIsForAllRanks) {
  const StreamMap map = StreamMap::parse("2", "tee");
  EXPECT_TRUE(map.has(0, Stream::kErr));
  EXPECT_FALSE(map.has(0, Stream::kOut));
  EXPECT_TRUE(map.has(99, Stream::kErr));
}

TEST(StreamMap, AListNamesRanksOfAnyNumberOfDigits) {
  const StreamMap map = StreamMap::parse("0:3,12:1", "tee");
  EXPECT_TRUE(map.has(0, Stream::kErr));
  EXPECT_TRUE(map.has(12, Stream::kOut));
  EXPECT_FALSE(map.has(12, Stream::kErr));
  EXPECT_FALSE(map.has(1, Stream::kOut));
}

TEST(StreamMap, ZeroIsEmpty) {
  EXPECT_TRUE(StreamMap().is_empty());
  EXPECT_TRUE(StreamMap::parse("0", "tee").is_empty());
  EXPECT_FALSE(StreamMap::parse("1:1", "tee").is_empty());
}

TEST(StreamMap, RefusesEverythingElse) {
  for (const char* text : {"", "4", "-1", "0:4", "0:1,", "a:1", "0:1:2"}) {
    EXPECT_THROW(StreamMap::parse(text, "tee"), ConfigError) << text;
  }
}

}  // namespace
}  // namespace lockstep

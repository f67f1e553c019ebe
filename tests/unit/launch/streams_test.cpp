#include "lockstep/launch/streams.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

TEST(StreamMap, OneNumberIsForAllRanks) {
  const launch::StreamMap map = launch::StreamMap::parse("2", "tee");
  EXPECT_TRUE(map.has(0, launch::Stream::kErr));
  EXPECT_FALSE(map.has(0, launch::Stream::kOut));
  EXPECT_TRUE(map.has(99, launch::Stream::kErr));
}

TEST(StreamMap, AListNamesRanksOfAnyNumberOfDigits) {
  const launch::StreamMap map = launch::StreamMap::parse("0:3,12:1", "tee");
  EXPECT_TRUE(map.has(0, launch::Stream::kErr));
  EXPECT_TRUE(map.has(12, launch::Stream::kOut));
  EXPECT_FALSE(map.has(12, launch::Stream::kErr));
  EXPECT_FALSE(map.has(1, launch::Stream::kOut));
}

TEST(StreamMap, ZeroIsEmpty) {
  EXPECT_TRUE(launch::StreamMap().is_empty());
  EXPECT_TRUE(launch::StreamMap::parse("0", "tee").is_empty());
  EXPECT_FALSE(launch::StreamMap::parse("1:1", "tee").is_empty());
}

TEST(StreamMap, RefusesEverythingElse) {
  for (const char* text : {"", "4", "-1", "0:4", "0:1,", "a:1", "0:1:2"}) {
    EXPECT_THROW(launch::StreamMap::parse(text, "tee"), ConfigError) << text;
  }
}

}  // namespace
}  // namespace lockstep

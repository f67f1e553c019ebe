#include "lockstep/error.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(ExitCode, EachKindHasItsOwn) {
  EXPECT_EQ(exit_code(ConfigError("")), 2);
  EXPECT_EQ(exit_code(IoError("")), 3);
  EXPECT_EQ(exit_code(FormatError("")), 4);
  EXPECT_EQ(exit_code(PeerError("")), 5);
  EXPECT_EQ(exit_code(TimeoutError("")), 6);
  EXPECT_EQ(exit_code(DeviceError("")), 7);
  EXPECT_EQ(exit_code(InternalError("")), 70);
  EXPECT_EQ(exit_code(std::runtime_error("")), 1);
}

TEST(KindName, NamesTheMostDerivedKind) {
  EXPECT_EQ(kind_name(TimeoutError("")), "TimeoutError");
  EXPECT_EQ(kind_name(ConfigError("")), "ConfigError");
}

TEST(Check, ThrowsInternalErrorWithTheCondition) {
  const int value = 3;
  EXPECT_NO_THROW(LOCKSTEP_CHECK(value == 3, "fine"));
  try {
    LOCKSTEP_CHECK(value == 4, "value is " + std::to_string(value));
    FAIL();
  } catch (const InternalError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("value == 4"), std::string::npos);
    EXPECT_NE(text.find("value is 3"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep

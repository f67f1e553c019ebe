#include "lockstep/base/signals.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lockstep {
namespace {

TEST(Signals, NamesAndNumbersMatch) {
  EXPECT_EQ(signal_name(SIGKILL), "SIGKILL");
  EXPECT_EQ(signal_name(200), "signal 200");
  EXPECT_EQ(parse_signal("SIGUSR1"), SIGUSR1);
  EXPECT_EQ(parse_signal("TERM"), SIGTERM);
  EXPECT_FALSE(parse_signal("SIGNONE"));
}

TEST(Signals, KillSuspectsTheMemoryKiller) {
  EXPECT_NE(signal_meaning(SIGKILL).find("out-of-memory"), std::string::npos);
  EXPECT_EQ(signal_meaning(SIGWINCH), "");
}

}  // namespace
}  // namespace lockstep

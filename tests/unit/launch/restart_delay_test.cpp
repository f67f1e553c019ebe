#include "lockstep/launch/restart_delay.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(RestartDelay, DoublesUpToItsLimit) {
  launch::RestartDelay delay;
  for (const double expected : {0, 1, 2, 4, 8, 16, 30, 30}) {
    EXPECT_EQ(delay.after(0.1), expected);
  }
}

TEST(RestartDelay, AnAttemptThatRanForLongStartsAtOnceAgain) {
  launch::RestartDelay delay;
  for (int i = 0; i < 5; ++i) delay.after(1);
  EXPECT_EQ(delay.after(launch::RestartDelay::kSettledSeconds), 0);
  EXPECT_EQ(delay.after(1), 1);
}

}  // namespace
}  // namespace lockstep

#include "lockstep/run/stop_signals.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lockstep {
namespace {

TEST(StopSignals, ASaveIsTakenOnce) {
  StopSignals signals;
  EXPECT_EQ(signals.take(), StopRequest::kNone);
  raise(SIGUSR1);
  EXPECT_EQ(signals.take(), StopRequest::kSave);
  EXPECT_EQ(signals.take(), StopRequest::kNone);
}

TEST(StopSignals, TheStrongestStopCountsAndStays) {
  StopSignals signals;
  signals.arm({});
  raise(SIGINT);
  raise(SIGTERM);
  raise(SIGUSR1);
  EXPECT_EQ(signals.take(), StopRequest::kTerminate);
  EXPECT_EQ(signals.take(), StopRequest::kTerminate);
}

TEST(StopSignals, ASecondInterruptEndsTheProcess) {
  EXPECT_EXIT(
      {
        StopSignals signals;
        signals.arm({});
        raise(SIGINT);
        raise(SIGINT);
      },
      ::testing::ExitedWithCode(130), "");
}

TEST(StopSignals, BeforeTheyAreArmedStopsEndTheProcess) {
  EXPECT_EXIT(
      {
        const StopSignals signals;
        raise(SIGTERM);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignals, EveryStopHasItsExitCode) {
  EXPECT_EQ(exit_code_of(StopRequest::kNone), 0);
  EXPECT_EQ(exit_code_of(StopRequest::kSave), 0);
  EXPECT_EQ(exit_code_of(StopRequest::kHangUp), 129);
  EXPECT_EQ(exit_code_of(StopRequest::kInterrupt), 130);
  EXPECT_EQ(exit_code_of(StopRequest::kTerminate), 143);
  EXPECT_FALSE(is_stop(StopRequest::kSave));
  EXPECT_TRUE(is_stop(StopRequest::kHangUp));
}

}  // namespace
}  // namespace lockstep

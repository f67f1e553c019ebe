#include "lockstep/run/stop_signals.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lockstep {
namespace {

TEST(StopSignals, ASaveIsTakenOnce) {
  run::StopSignals signals;
  EXPECT_EQ(signals.take(), run::StopRequest::kNone);
  raise(SIGUSR1);
  EXPECT_EQ(signals.take(), run::StopRequest::kSave);
  EXPECT_EQ(signals.take(), run::StopRequest::kNone);
}

TEST(StopSignals, TheStrongestStopCountsAndStays) {
  run::StopSignals signals;
  signals.arm({});
  raise(SIGINT);
  raise(SIGTERM);
  raise(SIGUSR1);
  EXPECT_EQ(signals.take(), run::StopRequest::kTerminate);
  EXPECT_EQ(signals.take(), run::StopRequest::kTerminate);
}

TEST(StopSignals, ASecondInterruptEndsTheProcess) {
  EXPECT_EXIT(
      {
        run::StopSignals signals;
        signals.arm({});
        raise(SIGINT);
        raise(SIGINT);
      },
      ::testing::ExitedWithCode(130), "");
}

TEST(StopSignals, BeforeTheyAreArmedStopsEndTheProcess) {
  EXPECT_EXIT(
      {
        const run::StopSignals signals;
        raise(SIGTERM);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignals, EveryStopHasItsExitCode) {
  EXPECT_EQ(run::exit_code_of(run::StopRequest::kNone), 0);
  EXPECT_EQ(run::exit_code_of(run::StopRequest::kSave), 0);
  EXPECT_EQ(run::exit_code_of(run::StopRequest::kHangUp), 129);
  EXPECT_EQ(run::exit_code_of(run::StopRequest::kInterrupt), 130);
  EXPECT_EQ(run::exit_code_of(run::StopRequest::kTerminate), 143);
  EXPECT_FALSE(run::is_stop(run::StopRequest::kSave));
  EXPECT_TRUE(run::is_stop(run::StopRequest::kHangUp));
}

}  // namespace
}  // namespace lockstep

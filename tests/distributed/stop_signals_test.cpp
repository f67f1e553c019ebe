// One decision of all ranks about a signal that reached one of them.
#include "lockstep/run/stop_signals.h"

#include <gtest/gtest.h>

#include <csignal>

#include "lockstep/base/status.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

TEST(AgreedStop, SlowWorkStopsAtTheVeryNextBoundary) {
  testing::run_ranks({.size = 2}, [](const World& world) {
    StopSignals signals;
    signals.arm(world.status());
    AgreedStop agreed(world, signals);
    // Quick on rank 0: the slower rank counts.
    const Pace pace = world.is_main() ? Pace::kQuick : Pace::kSlow;
    EXPECT_EQ(agreed.next(pace), StopRequest::kNone);
    EXPECT_EQ(agreed.next(pace), StopRequest::kNone);
    if (world.is_main()) raise(SIGINT);
    EXPECT_EQ(agreed.next(pace), StopRequest::kInterrupt);
    agreed.finish();
  });
}

TEST(AgreedStop, TheFirstBoundaryCountsAsSlow) {
  testing::run_ranks({.size = 2}, [](const World& world) {
    StopSignals signals;
    signals.arm(world.status());
    AgreedStop agreed(world, signals);
    if (world.is_main()) raise(SIGTERM);
    EXPECT_EQ(agreed.next(Pace::kSlow), StopRequest::kTerminate);
    agreed.finish();
  });
}

TEST(AgreedStop, QuickWorkDoesNotWaitForTheVote) {
  testing::run_ranks({.size = 2}, [](const World& world) {
    StopSignals signals;
    signals.arm(world.status());
    AgreedStop agreed(world, signals);
    EXPECT_EQ(agreed.next(Pace::kQuick), StopRequest::kNone);
    EXPECT_EQ(agreed.next(Pace::kQuick), StopRequest::kNone);
    if (world.is_main()) raise(SIGINT);
    EXPECT_EQ(agreed.next(Pace::kQuick), StopRequest::kNone);
    EXPECT_EQ(agreed.next(Pace::kQuick), StopRequest::kInterrupt);
    agreed.finish();
  });
}

TEST(AgreedStop, ASaveIsAskedForOnce) {
  testing::run_ranks({.size = 2}, [](const World& world) {
    StopSignals signals;
    signals.arm(world.status());
    AgreedStop agreed(world, signals);
    EXPECT_EQ(agreed.next(Pace::kSlow), StopRequest::kNone);
    if (world.is_main()) raise(SIGUSR1);
    EXPECT_EQ(agreed.next(Pace::kSlow), StopRequest::kSave);
    EXPECT_EQ(agreed.next(Pace::kSlow), StopRequest::kNone);
    agreed.finish();
  });
}

}  // namespace
}  // namespace lockstep

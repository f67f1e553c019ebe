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
    run::StopSignals signals;
    signals.arm(world.status());
    run::AgreedStop agreed(world, signals);
    // Quick on rank 0: the slower rank counts.
    const run::Pace pace =
        world.is_main() ? run::Pace::kQuick : run::Pace::kSlow;
    EXPECT_EQ(agreed.next(pace), run::StopRequest::kNone);
    EXPECT_EQ(agreed.next(pace), run::StopRequest::kNone);
    if (world.is_main()) raise(SIGINT);
    EXPECT_EQ(agreed.next(pace), run::StopRequest::kInterrupt);
    agreed.finish();
  });
}

TEST(AgreedStop, TheFirstBoundaryCountsAsSlow) {
  testing::run_ranks({.size = 2}, [](const World& world) {
    run::StopSignals signals;
    signals.arm(world.status());
    run::AgreedStop agreed(world, signals);
    if (world.is_main()) raise(SIGTERM);
    EXPECT_EQ(agreed.next(run::Pace::kSlow), run::StopRequest::kTerminate);
    agreed.finish();
  });
}

TEST(AgreedStop, QuickWorkDoesNotWaitForTheVote) {
  testing::run_ranks({.size = 2}, [](const World& world) {
    run::StopSignals signals;
    signals.arm(world.status());
    run::AgreedStop agreed(world, signals);
    EXPECT_EQ(agreed.next(run::Pace::kQuick), run::StopRequest::kNone);
    EXPECT_EQ(agreed.next(run::Pace::kQuick), run::StopRequest::kNone);
    if (world.is_main()) raise(SIGINT);
    EXPECT_EQ(agreed.next(run::Pace::kQuick), run::StopRequest::kNone);
    EXPECT_EQ(agreed.next(run::Pace::kQuick), run::StopRequest::kInterrupt);
    agreed.finish();
  });
}

TEST(AgreedStop, ASaveIsAskedForOnce) {
  testing::run_ranks({.size = 2}, [](const World& world) {
    run::StopSignals signals;
    signals.arm(world.status());
    run::AgreedStop agreed(world, signals);
    EXPECT_EQ(agreed.next(run::Pace::kSlow), run::StopRequest::kNone);
    if (world.is_main()) raise(SIGUSR1);
    EXPECT_EQ(agreed.next(run::Pace::kSlow), run::StopRequest::kSave);
    EXPECT_EQ(agreed.next(run::Pace::kSlow), run::StopRequest::kNone);
    agreed.finish();
  });
}

}  // namespace
}  // namespace lockstep

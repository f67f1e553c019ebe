// One decision of all ranks about a signal that reached one of them.
#include "lockstep/train/stop_signals.h"

#include <gtest/gtest.h>

#include <csignal>

#include "support/ranks.h"

namespace lockstep {
namespace {

TEST(SharedWish, SlowWorkStopsAtTheVeryNextBoundary) {
  testing::run_ranks({.size = 2}, [](const World& world) {
    StopSignals signals;
    signals.arm(world.status());
    SharedWish wish(world, signals);
    // Quick on rank 0: the slower rank counts.
    const Pace pace = world.is_main() ? Pace::kQuick : Pace::kSlow;
    EXPECT_EQ(wish.next(pace), Wish::kNone);
    EXPECT_EQ(wish.next(pace), Wish::kNone);
    if (world.is_main()) raise(SIGINT);
    EXPECT_EQ(wish.next(pace), Wish::kInterrupt);
    wish.finish();
  });
}

TEST(SharedWish, TheFirstBoundaryCountsAsSlow) {
  testing::run_ranks({.size = 2}, [](const World& world) {
    StopSignals signals;
    signals.arm(world.status());
    SharedWish wish(world, signals);
    if (world.is_main()) raise(SIGTERM);
    EXPECT_EQ(wish.next(Pace::kSlow), Wish::kTerminate);
    wish.finish();
  });
}

TEST(SharedWish, QuickWorkDoesNotWaitForTheVote) {
  testing::run_ranks({.size = 2}, [](const World& world) {
    StopSignals signals;
    signals.arm(world.status());
    SharedWish wish(world, signals);
    EXPECT_EQ(wish.next(Pace::kQuick), Wish::kNone);
    EXPECT_EQ(wish.next(Pace::kQuick), Wish::kNone);
    if (world.is_main()) raise(SIGINT);
    EXPECT_EQ(wish.next(Pace::kQuick), Wish::kNone);
    EXPECT_EQ(wish.next(Pace::kQuick), Wish::kInterrupt);
    wish.finish();
  });
}

TEST(SharedWish, ASaveIsAskedForOnce) {
  testing::run_ranks({.size = 2}, [](const World& world) {
    StopSignals signals;
    signals.arm(world.status());
    SharedWish wish(world, signals);
    EXPECT_EQ(wish.next(Pace::kSlow), Wish::kNone);
    if (world.is_main()) raise(SIGUSR1);
    EXPECT_EQ(wish.next(Pace::kSlow), Wish::kSave);
    EXPECT_EQ(wish.next(Pace::kSlow), Wish::kNone);
    wish.finish();
  });
}

}  // namespace
}  // namespace lockstep

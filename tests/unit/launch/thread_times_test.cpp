#include "lockstep/launch/thread_times.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace lockstep {
namespace {

constexpr int64_t kOneSecond = 1'000'000'000;

TEST(ThreadTimes, ReadsThisProcess) {
  const auto before = launch::thread_times_of(getpid());
  ASSERT_TRUE(before.contains(getpid()));
  EXPECT_TRUE(before.at(getpid()).is_runnable);
  launch::ThreadTimes after = before;
  // The kernel counts at ticks.
  while (after[getpid()].run_ns == before.at(getpid()).run_ns) {
    after = launch::thread_times_of(getpid());
  }
  EXPECT_GT(launch::scheduling_between(before, after, 1).run, 0);
}

TEST(ThreadTimes, AGoneProcessHasNone) {
  EXPECT_TRUE(launch::thread_times_of(0).empty());
}

TEST(ThreadTimes, AddsWhatThreadsRanAndWaited) {
  const launch::ThreadTimes before = {{1, {.run_ns = kOneSecond}}, {2, {}}};
  const launch::ThreadTimes after = {
      {1, {.run_ns = 2 * kOneSecond, .delay_ns = kOneSecond, .num_slices = 3}},
      {2, {.run_ns = 0, .delay_ns = kOneSecond, .num_slices = 1}}};
  const auto spent = launch::scheduling_between(before, after, 4);
  EXPECT_DOUBLE_EQ(spent.run, 1);
  EXPECT_DOUBLE_EQ(spent.starved, 2);
}

TEST(ThreadTimes, AThreadThatNeverGotACpuWaitedAllTheTime) {
  const launch::ThreadTimes waiting = {{1, {.is_runnable = true}}};
  EXPECT_DOUBLE_EQ(launch::scheduling_between(waiting, waiting, 2).starved,
                   1.8);
  const launch::ThreadTimes sleeping = {{1, {}}};
  EXPECT_DOUBLE_EQ(launch::scheduling_between(sleeping, sleeping, 2).starved,
                   0);
}

}  // namespace
}  // namespace lockstep

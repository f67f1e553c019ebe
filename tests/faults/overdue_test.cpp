// A rank that outstays the timeout without ending itself.
#include <gtest/gtest.h>

#include "faults/launcher.h"

namespace lockstep::testing {
namespace {

TEST(Overdue, TheLauncherEndsTheJob) {
  Process launcher(
      job({"--nproc=2", "--timeout=1", LOCKSTEP_STATUS_WORKER, "hang"}));
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 6);
  EXPECT_TRUE(contains(result.err, "TimeoutError: all_reduce #2 runs for"));
  EXPECT_TRUE(contains(result.err, "stalled: rank 1"));
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 0).empty());
}

}  // namespace
}  // namespace lockstep::testing

// Workers that crash: the stack in the report. Sanitizers have handlers of
// their own, which stay in place; their builds leave this file out.
#include <gtest/gtest.h>

#include "faults/launcher.h"

namespace lockstep::testing {
namespace {

TEST(Crash, TheReportShowsTheStackTheStepAndThePhase) {
  const TempDir folder;
  const auto result =
      run(job({"--nproc=2", "--shutdown-timeout=0.3", LOCKSTEP_TRAINING_WORKER,
               "crash", folder.path().string()}),
          with_temp(folder));
  EXPECT_EQ(result.exit_code, 139) << result.err;
  const std::string cause = cause_in(result.err);
  EXPECT_TRUE(contains(cause, "rank      : 1")) << cause;
  EXPECT_TRUE(contains(cause, "position  : step 12, forward\n")) << cause;
  EXPECT_TRUE(contains(
      cause, "stack     : at address 0x10, in thread training_worker\n"))
      << cause;
  EXPECT_TRUE(contains(cause, "#0 write_to_nowhere()+")) << cause;
  EXPECT_TRUE(contains(cause, "(training_worker)\n")) << cause;
  EXPECT_TRUE(contains(cause, "#1 main+")) << cause;
}

TEST(Crash, AProgramWithoutLauncherLeavesItsStackOnStderr) {
  const TempDir folder;
  const auto result =
      run({LOCKSTEP_TRAINING_WORKER, "crash", folder.path().string()},
          {.environment = {{"RANK", "1"}}});
  EXPECT_EQ(result.exit_code, -11);
  EXPECT_TRUE(contains(result.err, "signal 11 fault 0x10")) << result.err;
  EXPECT_TRUE(contains(result.err, "training_worker(")) << result.err;
}

}  // namespace
}  // namespace lockstep::testing

// Workers that crash or run out of memory: what the report shows of them.
#include <gtest/gtest.h>

#include "faults/launcher.h"
#include "lockstep/base/strings.h"

namespace lockstep::testing {
namespace {

std::string cause_in(const std::string& report) {
  return report.substr(std::min(report.size(), report.find("Root Cause")));
}

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

// Without a page and in any language: the launcher asks the kernel.
TEST(Crash, AKilledRankIsShownWithItsPeakMemory) {
  const TempDir folder;
  const auto result =
      run(python_job({"--nproc=2"},
                     "import os, signal, time\n"
                     "if os.environ['RANK'] == '0': time.sleep(60)\n"
                     "room = b'x' * (200 << 20)\n"
                     "del room\n"
                     "os.kill(os.getpid(), signal.SIGKILL)\n"),
          with_temp(folder));
  EXPECT_EQ(result.exit_code, 137);
  const std::string cause = cause_in(result.err);
  const auto at = cause.find("  memory    : ");
  ASSERT_NE(at, std::string::npos) << cause;
  const std::string size =
      cause.substr(at + 14, cause.find(" MiB", at) - at - 14);
  EXPECT_GE(parse_number(size).value_or(0), 200) << cause;
  EXPECT_TRUE(contains(cause, " MiB resident at its peak\n")) << cause;
}

}  // namespace
}  // namespace lockstep::testing

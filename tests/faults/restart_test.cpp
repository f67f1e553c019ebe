// --max-restarts.
#include <gtest/gtest.h>

#include <csignal>

#include "faults/launcher.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

constexpr const char* kFailsOnce =
    "echo rank $RANK attempt $TORCHELASTIC_RESTART_COUNT of "
    "$TORCHELASTIC_MAX_RESTARTS; sleep 0.1; "
    "[ $TORCHELASTIC_RESTART_COUNT = 0 ] && [ $RANK = 1 ] && exit 3; exit 0";

TEST(Restart, TheSecondAttemptSucceeds) {
  const auto result = run_shell({"--nproc=2", "--max-restarts=2"}, kFailsOnce);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "rank 0 attempt 1 of 2"));
  EXPECT_TRUE(contains(result.out, "rank 1 attempt 1 of 2"));
  EXPECT_TRUE(contains(result.err, "rank 1 failed (exit code 3)"));
  EXPECT_TRUE(contains(result.err, "restart 1 of 2"));
  EXPECT_FALSE(contains(result.err, "FAILED"));
}

TEST(Restart, WithoutAttemptsLeftTheJobFails) {
  const auto result = run_shell({"--nproc=2", "--max-restarts=2"},
                                "[ $RANK = 1 ] && exit 3;"
                                "sleep 60");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(count(result.err, "start again"), 2);
  EXPECT_EQ(count(result.err, "FAILED"), 1);
}

TEST(Restart, RepeatedQuickFailuresWaitLongerEachTime) {
  const auto result = run_shell({"--nproc=2", "--max-restarts=3"}, "exit 3");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(contains(result.err, "start again (restart 1 of 3)"))
      << result.err;
  EXPECT_TRUE(contains(result.err,
                       "start again in 1.0 s, after repeated failures "
                       "(restart 2 of 3)"));
  EXPECT_TRUE(contains(result.err, "start again in 2.0 s"));
  EXPECT_GE(result.seconds, 3);
}

TEST(Restart, ASignalEndsTheWait) {
  Process launcher(shell_job({"--nproc=2", "--max-restarts=100"}, "exit 3"));
  ASSERT_TRUE(wait_for(
      [&] { return contains(launcher.err(), "start again in 4.0 s"); }, 40));
  launcher.send(SIGTERM);
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 143);
  EXPECT_TRUE(
      contains(result.err, "SIGTERM received, the job does not start again"))
      << result.err;
  EXPECT_FALSE(contains(result.err, "start again in 8.0 s"));
}

TEST(Restart, EachAttemptHasItsOwnLogs) {
  const TempDir logs;
  const auto result = run_shell({"--nproc=2", "--max-restarts=1", "-r1",
                                 "--log-dir", logs.path().string()},
                                kFailsOnce);
  EXPECT_EQ(result.exit_code, 0);
  const auto run = std::filesystem::directory_iterator(logs.path())->path();
  EXPECT_TRUE(std::filesystem::exists(run / "attempt_0/0/stdout.log"));
  EXPECT_TRUE(std::filesystem::exists(run / "attempt_1/1/stdout.log"));
}

}  // namespace
}  // namespace lockstep::testing

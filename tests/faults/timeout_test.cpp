// Timeouts: the launcher reports who kept the others waiting.
#include <gtest/gtest.h>

#include "faults/launcher.h"

namespace lockstep::testing {
namespace {

TEST(Timeout, AStoppedLockstepRankIsNamed) {
  const TempDir folder;
  const auto result =
      run(job({"--nproc=2", "--timeout=7", LOCKSTEP_STATUS_WORKER, "stop"}),
          with_temp(folder));
  EXPECT_EQ(result.exit_code, 6);
  EXPECT_TRUE(contains(result.err, "TimeoutError: all_reduce #2 timed out"));
  EXPECT_TRUE(contains(result.err, "waiting: rank 0"));
  EXPECT_TRUE(contains(result.err, "in all_reduce #2 (4.0 KiB)"));
  EXPECT_TRUE(contains(result.err, "stalled: rank 1"));
  EXPECT_TRUE(contains(result.err, "is stopped (SIGSTOP); resume it with"));
  EXPECT_TRUE(contains(result.err,
                       "last collective: broadcast #1 (1.0 KiB), phase: "
                       "loading data, step 4"))
      << result.err;
  EXPECT_TRUE(contains(result.err, "The limit is 7.0 s"));
  EXPECT_LT(result.seconds, 10);
}

TEST(Timeout, AStoppedForeignRankIsNamed) {
  const TempDir folder;
  const auto result = run_shell({"--nproc=2"},
                                R"([ $RANK = 1 ] && { kill -STOP $$; sleep 60; }
         sleep 0.5
         echo '{"message": {"message": "TimeoutError: store"}}' \
           > $TORCHELASTIC_ERROR_FILE
         exit 1)",
                                with_temp(folder));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "rank 0 (pid"));
  EXPECT_TRUE(contains(result.err, "gave up waiting"));
  EXPECT_TRUE(contains(result.err, "stalled: rank 1"));
  EXPECT_TRUE(contains(result.err, "resume it with kill -CONT"));
  EXPECT_TRUE(contains(result.err, "TORCH_DISTRIBUTED_TIMEOUT"));
}

TEST(Timeout, OtherFailuresHaveNoVerdict) {
  const auto result = run_shell({"--nproc=2"},
                                "[ $RANK = 1 ] && exit 3;"
                                "sleep 60");
  EXPECT_FALSE(contains(result.err, "Timeout"));
}

TEST(Timeout, TheOptionReachesTheWorkers) {
  const auto result = run_shell(
      {"--timeout=12.5"}, "echo $TORCH_DISTRIBUTED_TIMEOUT $NCCL_TIMEOUT");
  EXPECT_EQ(result.out, "12.5 12.5\n");
}

}  // namespace
}  // namespace lockstep::testing

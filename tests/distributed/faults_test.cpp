// What the operator reads when a rank of a real training fails: who, why, what
// to do.
#include "distributed/faults.h"

#include <gtest/gtest.h>

#include "support/messages.h"

namespace lockstep {
namespace {

using testing::expect_in;
using testing::expect_not_in;
using testing::expect_verdict;
using testing::train;

// In seconds; it counts for connecting, too, which takes several on a busy
// machine.
constexpr const char* kLimit = "20";

TEST(Faults, NoFaultNoReport) {
  const auto result = train("none", 0);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "all steps done");
  EXPECT_EQ(result.err.find("FAILED"), std::string::npos);
}

TEST(Faults, ARankKilledInAStepIsTheRootCause) {
  const auto result = train("kill", 1);
  EXPECT_EQ(result.exit_code, 128 + 9);
  expect_in(result.err, "rank      : 1 (local_rank: 1)");
  expect_in(result.err, "SIGKILL");
  expect_in(result.err, "out-of-memory killer");
  EXPECT_LT(result.seconds, 120) << "it waited for a time-out";
}

TEST(Faults, ARankThatThrowsIsTheRootCause) {
  for (const int rank : {0, 2}) {
    const auto result = train("throw", rank);
    EXPECT_EQ(result.exit_code, 3);
    const auto cause = result.err.substr(result.err.find("Root Cause"));
    expect_in(cause, "rank      : " + std::to_string(rank));
    expect_in(cause, "IoError: image.png: disk error");
  }
}

TEST(Faults, TheCauseIsNamedAlthoughItsVictimsEndFirst) {
  // Rank 0 hosts the store and closes it before it has reported why.
  for (int turn = 0; turn < 10; ++turn) {
    const auto result =
        testing::run({LOCKSTEP_PROGRAM, "run", "--nproc-per-node=2",
                      FAULTS_WORKER, "none", "0"},
                     {.environment = {{"GLOO_SOCKET_IFNAME", "nope0"}},
                      .folder = "",
                      .ignored_signals = {}});
    EXPECT_EQ(result.exit_code, 2) << result.err;
    expect_in(result.err, "no network interface 'nope0'");
    // The root cause is a ConfigError, which needs no report.
    expect_not_in(result.err, "FAILED");
  }
}

TEST(Faults, ARankThatLeavesEarlyIsTheRootCause) {
  const auto result = train("exit0", 2);
  EXPECT_EQ(result.exit_code, 5) << result.err;
  expect_in(result.err.substr(result.err.find("Root Cause")),
            "rank 2 exited with 0 while other ranks still needed it");
  expect_in(result.err, "had already exited with 0");
}

TEST(Faults, EachFaultHasItsVerdict) {
  expect_verdict(train("exit0", 2), "unequal number of batches",
                 "rank 2 exited with 0 while other ranks still needed it");
  expect_verdict(train("desync", 1), "desynchronised collectives",
                 "every rank must call the same collectives");
  expect_verdict(train("throw", 1), "exception", "IoError: image.png");
  expect_verdict(testing::run({LOCKSTEP_PROGRAM, "run", "--nproc-per-node=2",
                               FAULTS_WORKER, "none", "0"},
                              {.environment = {{"GLOO_SOCKET_IFNAME", "nope0"}},
                               .folder = "",
                               .ignored_signals = {}}),
                 "interface", "no network interface 'nope0'");
}

TEST(Faults, AStoppedRankIsNamedByTheTimeout) {
  const auto result = train("stop", 1, {"--timeout", kLimit});
  expect_in(result.err, "Verdict: stall\n");
  EXPECT_EQ(result.exit_code, 6) << result.err;
  expect_in(result.err, "rank 1");
  expect_in(result.err, "stopped");
  expect_in(result.err, "kill -CONT");
  expect_in(result.err, "all_reduce");
  for (const char* part :
       {"--timeout", "NCCL_TIMEOUT", "TORCH_DISTRIBUTED_TIMEOUT"}) {
    expect_in(result.err, part);
  }
}

TEST(Faults, ASlowRankIsNamedByTheTimeout) {
  const auto result = train("sleep", 0, {"--timeout", kLimit});
  EXPECT_EQ(result.exit_code, 6) << result.err;
  const auto verdict = result.err;
  expect_in(verdict, "waiting");
  expect_in(verdict, "rank 0");
  expect_in(verdict, "step 5");
}

TEST(Faults, ARankMissingAtAVoteIsNamed) {
  const auto result = train("vote", 1, {"--timeout", kLimit});
  EXPECT_EQ(result.exit_code, 6) << result.err;
  expect_in(result.err, "waiting: rank 0");
  expect_in(result.err, "in vote #");
  expect_in(result.err, "stalled: rank 1");
}

TEST(Faults, AnErrorOfTheProgramIsLeftAsItIs) {
  const auto result = train("odd", 1);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  expect_in(result.err, "runtime_error: bad value for 'timeout'");
  EXPECT_EQ(result.err.find("Timeout:"), std::string::npos) << result.err;
}

TEST(Faults, ARestartCanSucceed) {
  // Fails in the first attempt only.
  const auto result = testing::run(
      {LOCKSTEP_PROGRAM, "run", "--nproc-per-node=2", "--max-restarts=1",
       "--no-python", "/bin/sh", "-c",
       "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then exec " FAULTS_WORKER
       " throw 1; else exec " FAULTS_WORKER " none 0; fi"},
      {.environment = {}, .folder = "", .ignored_signals = {}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "all steps done");
}

TEST(Faults, EightJobsAtOnceDoNotMeet) {
  std::vector<std::unique_ptr<testing::Process>> jobs;
  for (int job = 0; job < 8; ++job) {
    jobs.push_back(std::make_unique<testing::Process>(
        std::vector<std::string>{LOCKSTEP_PROGRAM, "run", "--nproc-per-node=2",
                                 FAULTS_WORKER, "none", "0"},
        testing::ProcessOptions{.environment = {{"OMP_NUM_THREADS", "1"}},
                                .folder = "",
                                .ignored_signals = {}}));
  }
  for (const auto& job : jobs) {
    const auto result = job->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_in(result.out, "all steps done");
  }
}

}  // namespace
}  // namespace lockstep

// Workers that fail: who is blamed, what is said, what happens to the others.
#include <gtest/gtest.h>

#include "faults/launcher.h"
#include "lockstep/base/files.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

TEST(Failure, SuccessIsSilent) {
  const auto result = run_shell({"--nproc=2"}, "true",
                                {.environment = {{"OMP_NUM_THREADS", "1"}}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out + result.err, "");
}

TEST(Failure, AnExitCodeEndsTheOthersAtOnce) {
  Process launcher(
      shell_job({"--nproc=3"},
                "[ $RANK = 1 ] && { echo bad news >&2; exit 3; }; sleep 60"));
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_LT(result.seconds, 5);
  EXPECT_TRUE(contains(result.err, "sh FAILED"));
  EXPECT_TRUE(contains(result.err, "<NO_OTHER_FAILURES>"));
  EXPECT_TRUE(contains(result.err, "rank      : 1 (local_rank: 1)"));
  EXPECT_TRUE(contains(result.err, "exitcode  : 3"));
  EXPECT_TRUE(contains(result.err, "    bad news"));
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 0).empty());
}

TEST(Failure, AKilledRankIsExplained) {
  const auto result =
      run_shell({"--nproc=2"}, "[ $RANK = 0 ] && kill -9 $$; sleep 60");
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_TRUE(contains(result.err, "Signal 9 (SIGKILL)"));
  EXPECT_TRUE(contains(result.err, "out-of-memory"));
}

TEST(Failure, TheErrorFileOfTheWorkerIsShown) {
  const TempDir logs;
  const auto result = run_shell(
      {"--nproc=2", "--log-dir", logs.path().string()},
      R"([ $RANK = 1 ] && { echo '{"message": {"message": "ValueError: boom",
         "extraInfo": {"py_callstack": "Traceback: boom",
         "timestamp": "1700000000"}}}' > $TORCHELASTIC_ERROR_FILE; exit 1; }
         sleep 60)");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "traceback : Traceback: boom"));
  EXPECT_TRUE(contains(result.err, "attempt_0/1/error.json"));
}

// Rank 0 reports first and lingers, rank 1 dies of it.
TEST(Failure, TheFirstReportIsTheCauseNotTheFirstDeath) {
  const TempDir folder;
  const auto result = run_shell({"--nproc=2"},
                                R"(if [ $RANK = 0 ]; then
           echo '{"message": "cause"}' > $TORCHELASTIC_ERROR_FILE.tmp
           mv $TORCHELASTIC_ERROR_FILE.tmp $TORCHELASTIC_ERROR_FILE
           sleep 60
         fi
         while [ ! -e $(dirname $TORCHELASTIC_ERROR_FILE)/../0/error.json ]; do
           sleep 0.02
         done
         sleep 0.1; exit 9)",
                                with_temp(folder));
  const auto root = result.err.find("Root Cause");
  ASSERT_NE(root, std::string::npos);
  EXPECT_TRUE(contains(result.err.substr(root), "traceback : cause"));
  EXPECT_TRUE(contains(result.err.substr(0, root), "exitcode  : 9"));
}

// Rank 1 dies slowly: its victim notices before the launcher does.
TEST(Failure, AVictimIsNotTheCause) {
  const auto result = run_shell(
      {"--nproc=2"},
      "[ $RANK = 0 ] && { sleep 0.2; echo '{\"message\": {\"message\": "
      "\"PeerError: gone\"}}' > $TORCHELASTIC_ERROR_FILE; exit 5; };"
      "trap 'kill -SEGV $$' TERM; while true; do sleep 0.05; done");
  EXPECT_EQ(result.exit_code, 139) << result.err;
}

TEST(Failure, AnEarlyGoodExitIsNoFailureButIsMentioned) {
  EXPECT_EQ(
      run_shell({"--nproc=2"}, "[ $RANK = 1 ] && exit 0; sleep 0.3").exit_code,
      0);
  const auto result =
      run_shell({"--nproc=2"}, "[ $RANK = 1 ] && exit 0; sleep 0.3; exit 4");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_TRUE(contains(result.err, "rank 1 (pid"));
  EXPECT_TRUE(contains(result.err, "had already exited with 0"));
}

// Rank 0 only reports that its peer is gone.
TEST(Failure, ANeededRankThatExitsWith0IsTheCause) {
  const TempDir folder;
  const auto result = run_shell(
      {"--nproc=2"},
      "[ $RANK = 1 ] && exit 0; sleep 0.5; echo '{\"message\": {\"message\": "
      "\"PeerError: Connection closed by peer\"}}' > "
      "$TORCHELASTIC_ERROR_FILE; exit 5",
      with_temp(folder));
  EXPECT_EQ(result.exit_code, 5);
  const auto root = result.err.find("Root Cause");
  ASSERT_NE(root, std::string::npos) << result.err;
  EXPECT_TRUE(contains(result.err.substr(root), "rank      : 1")) << result.err;
  EXPECT_TRUE(contains(result.err.substr(root),
                       "rank 1 exited with 0 while other ranks still needed "
                       "it"));
  EXPECT_TRUE(contains(result.err.substr(0, root), "PeerError"));
}

// Rank 1 closes its connections long before it has reported why.
TEST(Failure, ACauseThatReportsLateIsWaitedFor) {
  const TempDir folder;
  const auto result = run_shell(
      {"--nproc=2"},
      "[ $RANK = 0 ] && { echo '{\"message\": {\"message\": \"PeerError: "
      "gone\"}}' > $TORCHELASTIC_ERROR_FILE; exit 5; };"
      "sleep 2; echo '{\"message\": {\"message\": \"IoError: disk\"}}' > "
      "$TORCHELASTIC_ERROR_FILE; exit 3",
      with_temp(folder));
  EXPECT_EQ(result.exit_code, 3);
  const auto root = result.err.find("Root Cause");
  ASSERT_NE(root, std::string::npos) << result.err;
  EXPECT_TRUE(contains(result.err.substr(root), "IoError: disk")) << result.err;
}

// Rank 1 has reported why, but does not end.
TEST(Failure, ACauseThatReportsLateAndLingersIsNamed) {
  const TempDir folder;
  const auto result = run_shell(
      {"--nproc=2", "--shutdown-timeout=0.5"},
      "[ $RANK = 0 ] && { echo '{\"message\": {\"message\": \"PeerError: "
      "gone\"}}' > $TORCHELASTIC_ERROR_FILE; exit 5; };"
      "sleep 1; echo '{\"message\": {\"message\": \"IoError: disk\"}}' > "
      "$TORCHELASTIC_ERROR_FILE; sleep 60",
      with_temp(folder));
  EXPECT_EQ(result.exit_code, 5);
  const auto root = result.err.find("Root Cause");
  ASSERT_NE(root, std::string::npos) << result.err;
  EXPECT_TRUE(contains(result.err.substr(root), "IoError: disk")) << result.err;
}

TEST(Failure, APipeInPlaceOfTheErrorFileBlocksNobody) {
  const TempDir folder;
  const auto result =
      run_shell({"--nproc=2"},
                "[ $RANK = 1 ] && { mkfifo $TORCHELASTIC_ERROR_FILE; exit 3; };"
                "sleep 60",
                with_temp(folder));
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 3) << result.err;
}

TEST(Failure, APipeInPlaceOfALogFileBlocksNobody) {
  const TempDir logs;
  const auto result =
      run_shell({"--nproc=2", "-r2", "--log-dir", logs.path().string()},
                "[ $RANK = 1 ] && { "
                "log=$(dirname $TORCHELASTIC_ERROR_FILE)/stderr.log; "
                "rm $log; mkfifo $log; exit 3; }; sleep 60");
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 3) << result.err;
}

TEST(Failure, AWorkerCannotTruncateItsStatusPage) {
  const auto result =
      run(python_job({"--nproc=2"},
                     "import os, time\n"
                     "fd = int(os.environ['LOCKSTEP_STATUS_FD'])\n"
                     "try: os.ftruncate(fd, 0)\n"
                     "except PermissionError: print('refused')\n"
                     "if os.environ['RANK'] == '1': os._exit(3)\n"
                     "time.sleep(60)\n"));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_TRUE(contains(result.out, "refused"));
  EXPECT_FALSE(contains(result.err, "keeper process was killed"));
}

TEST(Failure, AWorkerThatIgnoresTermIsKilledAfterTheGrace) {
  const auto result = run_shell({"--nproc=2", "--shutdown-timeout=0.3"},
                                "trap '' TERM; [ $RANK = 1 ] && exit 3; "
                                "while true; do sleep 0.1; done");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_LT(result.seconds, 5);
}

TEST(Failure, AGracefulWorkerHasTimeToSave) {
  const TempDir folder;
  const auto result =
      run_shell({"--nproc=2"},
                "trap 'sleep 0.3; echo saved > saved; exit 0' TERM; "
                "[ $RANK = 1 ] && { sleep 0.2; exit 3; }; while true; do sleep "
                "0.05; done",
                {.folder = folder.path().string()});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(base::read_file(folder.path() / "saved"), "saved\n");
}

TEST(Failure, LastWordsOfADyingRankAreNotLost) {
  const auto result = run_shell({"--nproc=2"},
                                "[ $RANK = 1 ] && { seq 1 5000; printf last "
                                ">&2; kill -9 $$; }; sleep 60");
  EXPECT_TRUE(contains(result.out, "\n5000\n"));
  EXPECT_TRUE(contains(result.err, "last"));
}

}  // namespace
}  // namespace lockstep::testing

// Signals to the launcher.
#include <gtest/gtest.h>

#include <csignal>

#include "faults/launcher.h"

namespace lockstep::testing {
namespace {

constexpr const char* kLoop = "while true; do sleep 0.05; done";

std::string trapping(const std::string& signal, const std::string& action) {
  return "trap '" + action + "' " + signal + "; echo ready $RANK; " + kLoop;
}

void expect_end(const char* name, int signal) {
  Process launcher(
      shell_job({"--nproc=2"}, trapping(name, "echo got $RANK; exit 0")));
  wait_until_ready(launcher);
  launcher.send(signal);
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 128 + signal);
  EXPECT_EQ(count(result.out, "got"), 2) << result.out;
  EXPECT_FALSE(contains(result.err, "FAILED"));
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 0).empty());
}

TEST(Signal, InterruptEndsTheJob) { expect_end("INT", SIGINT); }
TEST(Signal, TermEndsTheJob) { expect_end("TERM", SIGTERM); }
TEST(Signal, HangupEndsTheJob) { expect_end("HUP", SIGHUP); }
TEST(Signal, QuitEndsTheJob) { expect_end("QUIT", SIGQUIT); }

TEST(Signal, HangupIsIgnoredUnderNohup) {
  Process launcher(shell_job({"--nproc=2"}, "echo ready $RANK; sleep 0.5"),
                   {.ignored_signals = {SIGHUP}});
  wait_until_ready(launcher);
  launcher.send(SIGHUP);
  EXPECT_EQ(launcher.wait().exit_code, 0);
}

TEST(Signal, UserSignalsAreHandedOnAndNothingElse) {
  Process launcher(
      shell_job({"--nproc=2"},
                "trap 'echo one $RANK' USR1; trap 'exit 0' USR2;"
                "echo ready $RANK; while true; do sleep 0.05; done"));
  wait_until_ready(launcher);
  launcher.send(SIGUSR1);
  ASSERT_TRUE(launcher.wait_for_output("one 0"));
  ASSERT_TRUE(launcher.wait_for_output("one 1"));
  launcher.send(SIGUSR2);
  EXPECT_EQ(launcher.wait().exit_code, 0);
}

TEST(Signal, AChosenUserSignalEndsTheJob) {
  Process launcher(shell_job({"--nproc=2", "--signals-to-handle=SIGUSR1"},
                             trapping("USR1", "exit 0")));
  wait_until_ready(launcher);
  launcher.send(SIGUSR1);
  EXPECT_EQ(launcher.wait().exit_code, 128 + SIGUSR1);
}

TEST(Signal, TheSecondInterruptKills) {
  Process launcher(shell_job({"--nproc=2"}, trapping("INT", "echo got $RANK")));
  wait_until_ready(launcher);
  launcher.send(SIGINT);
  ASSERT_TRUE(launcher.wait_for_output("got 0"));
  launcher.send(SIGINT);
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_LT(result.seconds, 10);
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 0).empty());
}

TEST(Signal, StubbornWorkersAreKilledAfterTheGrace) {
  Process launcher(
      shell_job({"--nproc=2", "--shutdown-timeout=0.3"}, trapping("TERM", "")));
  wait_until_ready(launcher);
  launcher.send(SIGTERM);
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 143);
  EXPECT_LT(result.seconds, 8);
}

TEST(Signal, NoRestartAfterASignal) {
  Process launcher(
      shell_job({"--nproc=2", "--max-restarts=3"}, trapping("TERM", "exit 1")));
  wait_until_ready(launcher);
  launcher.send(SIGTERM);
  EXPECT_EQ(launcher.wait().exit_code, 143);
}

TEST(Signal, WorkersStartWithTheDefaultSignals) {
  const auto result =
      run(python_job({"--nproc=2"},
                     "import signal as s\n"
                     "assert not s.pthread_sigmask(s.SIG_BLOCK, [])\n"
                     "assert s.getsignal(s.SIGTERM) == s.SIG_DFL\n"
                     "assert s.getsignal(s.SIGUSR1) == s.SIG_DFL\n"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace lockstep::testing

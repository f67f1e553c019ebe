// After any end no process of the job is left.
#include <gtest/gtest.h>

#include <csignal>

#include "faults/launcher.h"

namespace lockstep::testing {
namespace {

// At once, but the machine may be busy; the processes would live for 100 s.
constexpr double kGoneSeconds = 60;

TEST(Leftover, NoneWhenTheLauncherIsKilled) {
  Process launcher(shell_job({"--nproc=2"}, kFamily));
  wait_for_family(launcher);
  launcher.send(SIGKILL);
  launcher.wait();
  EXPECT_TRUE(wait_until_gone(launcher.marker(), kGoneSeconds).empty());
}

TEST(Leftover, NoneWhenTheKeeperIsKilled) {
  Process launcher(shell_job({"--nproc=2"}, kFamily));
  wait_for_family(launcher);
  const pid_t keeper = find_keeper(launcher.pid());
  ASSERT_GT(keeper, 0);
  kill(keeper, SIGKILL);
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "keeper process was killed"));
  EXPECT_TRUE(wait_until_gone(launcher.marker(), kGoneSeconds).empty());
}

TEST(Leftover, NoneWhenTheProcessGroupOfTheLauncherIsKilled) {
  Process launcher(
      {"setsid", LOCKSTEP_PROGRAM, "run", "--nproc=2", "sh", "-c", kFamily});
  wait_for_family(launcher);
  killpg(launcher.pid(), SIGKILL);
  launcher.wait();
  EXPECT_TRUE(wait_until_gone(launcher.marker(), kGoneSeconds).empty());
}

TEST(Leftover, NoneAfterSuccess) {
  Process launcher(shell_job({"--nproc=2"}, "(setsid sleep 100 &); sleep 0.1"));
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_LT(result.seconds, kGoneSeconds);
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 0).empty());
}

TEST(Leftover, NoneAfterAFailureWithStubbornChildren) {
  Process launcher(shell_job(
      {"--nproc=2", "--shutdown-timeout=0.2"},
      std::string("[ $RANK = 1 ] && { sleep 0.5; exit 3; };") + kFamily));
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 0).empty());
}

}  // namespace
}  // namespace lockstep::testing

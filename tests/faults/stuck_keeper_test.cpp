// A keeper that never answers: the launcher waits, then does its work.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <csignal>

#include "faults/launcher.h"

namespace lockstep::testing {
namespace {

TEST(StuckKeeper, TheLauncherEndsTheJobPolitely) {
  const TempDir folder;
  Process launcher(shell_job({"--nproc=2"},
                             "trap 'echo $RANK > saved$RANK; exit 0' TERM; "
                             "echo ready $RANK; while true; do sleep 0.05; "
                             "done"),
                   {.folder = folder.path().string()});
  ASSERT_TRUE(launcher.wait_for_output("ready 0", 120));
  ASSERT_TRUE(launcher.wait_for_output("ready 1", 120));
  const pid_t keeper = find_keeper(launcher.pid());
  ASSERT_EQ(ptrace(PTRACE_SEIZE, keeper, nullptr, nullptr), 0);
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, keeper, nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(keeper, nullptr, __WALL), keeper);
  launcher.send(SIGTERM);
  // The death of a held process is seen by its debugger first.
  EXPECT_TRUE(wait_for(
      [&] { return waitpid(keeper, nullptr, WNOHANG | __WALL) == keeper; },
      60));
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 143);
  EXPECT_TRUE(contains(result.err, "does not answer")) << result.err;
  EXPECT_EQ(base::read_file(folder.path() / "saved0"), "0\n");
  EXPECT_EQ(base::read_file(folder.path() / "saved1"), "1\n");
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 60).empty());
}

}  // namespace
}  // namespace lockstep::testing

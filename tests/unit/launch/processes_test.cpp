#include "lockstep/launch/processes.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "support/process.h"

namespace lockstep {
namespace {

TEST(Processes, FindsThisProcess) {
  const auto self = launch::find_process(getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->parent, getppid());
  EXPECT_EQ(self->state, 'R');
  EXPECT_FALSE(launch::find_process(1 << 30));
}

TEST(Processes, FindsGrandchildren) {
  testing::Process shell({"sh", "-c", "sleep 100 & echo ready; wait"});
  ASSERT_TRUE(shell.wait_for_output("ready"));
  const auto found = launch::find_descendants(getpid());
  EXPECT_EQ(found.size(), 2u);
  for (const launch::ProcessInfo& process : found) kill(process.pid, SIGKILL);
}

// In a process of its own: it becomes a subreaper and blocks SIGCHLD.
int kill_a_family() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  testing::Process shell(
      {"sh", "-c",
       "trap '' TERM; (setsid sleep 100 &) ; (sleep 100 &); echo ready; sleep "
       "100"});
  if (!shell.wait_for_output("ready")) return 1;
  if (!launch::kill_descendants(5).empty()) return 2;
  if (!launch::find_descendants(getpid()).empty()) return 3;
  return testing::find_marked(shell.marker()).empty() ? 0 : 4;
}

TEST(Processes, KillsDetachedGrandchildrenToo) {
  const pid_t pid = fork();
  if (pid == 0) _exit(kill_a_family());
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace lockstep

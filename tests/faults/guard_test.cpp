// Front, guard and keeper: whichever of them is stopped, stuck or killed, the
// job ends and nothing is left.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "faults/launcher.h"
#include "lockstep/launch/processes.h"

namespace lockstep::testing {
namespace {

constexpr const char* kObedient =
    "trap 'echo got $RANK; exit 0' INT; echo ready $RANK; "
    "while true; do sleep 0.05; done";

char state_of(pid_t pid) {
  const auto process = launch::find_process(pid);
  return process ? process->state : '?';
}

void stop(pid_t pid) {
  ASSERT_GT(pid, 0);
  kill(pid, SIGSTOP);
  ASSERT_TRUE(wait_for([&] { return state_of(pid) == 'T'; }, 10));
}

// Holds a process as a debugger does, until it is killed.
void hold(pid_t pid) {
  ASSERT_GT(pid, 0);
  ASSERT_EQ(ptrace(PTRACE_SEIZE, pid, nullptr, nullptr), 0);
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(pid, nullptr, __WALL), pid);
}

// The death of a held process is seen by its debugger first.
void wait_for_held(pid_t pid) {
  EXPECT_TRUE(wait_for(
      [&] { return waitpid(pid, nullptr, WNOHANG | __WALL) == pid; }, 40));
}

bool is_empty(const TempDir& folder) {
  return std::filesystem::is_empty(folder.path());
}

TEST(Guard, AStoppedKeeperIsContinuedByTheSignalThatEndsTheJob) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Process launcher(shell_job({"--nproc=2"}, kObedient));
    wait_until_ready(launcher);
    stop(find_keeper(launcher.pid()));
    launcher.send(signal);
    const auto result = launcher.wait();
    EXPECT_EQ(result.exit_code, 128 + signal) << result.err;
    EXPECT_EQ(count(result.out, "got"), signal == SIGINT ? 2 : 0);
    EXPECT_TRUE(wait_until_gone(launcher.marker(), 5).empty());
  }
}

TEST(Guard, AStoppedGuardDoesNotKeepTheJobFromEnding) {
  Process launcher(shell_job({"--nproc=2"}, "echo ready $RANK; sleep 1"));
  wait_until_ready(launcher);
  stop(find_guard(launcher.pid()));
  EXPECT_EQ(launcher.wait().exit_code, 0);
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 5).empty());
}

TEST(Guard, AKeeperInADebuggerCannotHoldTheJob) {
  const TempDir folder;
  auto options = with_temp(folder);
  Process launcher(shell_job({"--nproc=2"}, kFamily), options);
  wait_for_family(launcher);
  const pid_t keeper = find_keeper(launcher.pid());
  hold(keeper);
  launcher.send(SIGINT);
  // A second signal within 2 s may still be answered in time.
  const double begin = now_seconds();
  wait_for([&] { return now_seconds() - begin > 2.5; }, 5);
  launcher.send(SIGINT);
  wait_for_held(keeper);
  const auto result = launcher.wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_TRUE(contains(result.err,
                       "does not answer, it is stopped by a debugger; ending "
                       "all processes of the job without it"))
      << result.err;
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 5).empty());
  EXPECT_TRUE(is_empty(folder));
}

TEST(Guard, EndsTheJobWhenTheLauncherIsKilledAndTheKeeperIsStopped) {
  Process launcher(shell_job({"--nproc=2"}, kFamily));
  wait_for_family(launcher);
  stop(find_keeper(launcher.pid()));
  launcher.send(SIGKILL);
  launcher.wait();
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 10).empty());
}

TEST(Guard, EndsTheJobWhenTheLauncherIsKilledAndBothOthersAreStopped) {
  Process launcher(shell_job({"--nproc=2"}, kFamily));
  wait_for_family(launcher);
  stop(find_keeper(launcher.pid()));
  stop(find_guard(launcher.pid()));
  launcher.send(SIGKILL);
  launcher.wait();
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 10).empty());
}

enum class Part { kFront, kGuard, kKeeper };

void expect_nothing_left(const std::vector<Part>& killed) {
  const TempDir folder;
  auto options = with_temp(folder);
  Process launcher(shell_job({"--nproc=2"}, kFamily), options);
  wait_for_family(launcher);
  std::vector<pid_t> pids;
  for (const Part part : killed) {
    pids.push_back(part == Part::kFront   ? launcher.pid()
                   : part == Part::kGuard ? find_guard(launcher.pid())
                                          : find_keeper(launcher.pid()));
    ASSERT_GT(pids.back(), 0);
  }
  // Stopped first, and the younger killed first, whose end wakes nobody: one
  // that reacted to the other's death would end the third before it is killed.
  for (const pid_t pid : pids) kill(pid, SIGSTOP);
  std::sort(pids.rbegin(), pids.rend());
  for (const pid_t pid : pids) kill(pid, SIGKILL);
  launcher.wait();
  EXPECT_TRUE(wait_until_gone(launcher.marker(), 10).empty());
  EXPECT_TRUE(wait_for([&] { return is_empty(folder); }, 10));
}

TEST(Guard, AloneIsEnoughToEndTheJob) {
  for (int i = 0; i < 5; ++i) {
    expect_nothing_left({Part::kFront, Part::kKeeper});
    expect_nothing_left({Part::kKeeper, Part::kFront});
  }
}

TEST(Guard, AnyOtherTwoMayBeKilledTogether) {
  for (int i = 0; i < 2; ++i) {
    expect_nothing_left({Part::kFront, Part::kGuard});
    expect_nothing_left({Part::kGuard, Part::kFront});
    expect_nothing_left({Part::kGuard, Part::kKeeper});
    expect_nothing_left({Part::kKeeper, Part::kGuard});
  }
}

TEST(Guard, AKilledPartLeavesNoTemporaryFolder) {
  expect_nothing_left({Part::kFront});
  expect_nothing_left({Part::kGuard});
  expect_nothing_left({Part::kKeeper});
}

TEST(Guard, IsNotFoundByTheNamesOfTheOthers) {
  Process launcher(shell_job({"--nproc=2"}, "echo ready $RANK; sleep 1"));
  wait_until_ready(launcher);
  const std::string folder =
      "/proc/" + std::to_string(find_guard(launcher.pid()));
  EXPECT_EQ(base::read_file(folder + "/comm"), "job-guard\n");
  const std::string words = base::read_file(folder + "/cmdline");
  EXPECT_FALSE(contains(words, "lockstep")) << words;
  EXPECT_FALSE(contains(words, "ready")) << words;
  EXPECT_EQ(launcher.wait().exit_code, 0);
}

}  // namespace
}  // namespace lockstep::testing

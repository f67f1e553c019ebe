#include "lockstep/track/side_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "support/messages.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

constexpr double kPatience = 60;  // Seconds.

class SideProcessTest : public ::testing::Test {
 protected:
  track::SideProgram shell(const std::string& script) const {
    return {.file = "/bin/sh",
            .arguments = {"sh", "-c", script},
            .environment = {{"PATH", "/usr/bin:/bin"}, {"COLOUR", "blue"}},
            .output = output()};
  }

  static std::optional<int> end_of(track::SideProcess& process) {
    testing::wait_for([&] { return process.end().has_value(); }, kPatience);
    return process.end();
  }

  std::filesystem::path output() const { return folder_.path() / "output"; }
  std::string text() const { return base::read_file(output()); }

  TempDir folder_;
};

TEST_F(SideProcessTest, EndsWithACodeOrASignal) {
  track::SideProcess ends(shell("exit 3"));
  EXPECT_EQ(end_of(ends), 3);
  track::SideProcess dies(shell("kill -TERM $$"));
  EXPECT_EQ(end_of(dies), -SIGTERM);
  track::SideProcess missing({.file = folder_.path() / "nothing",
                              .arguments = {"nothing"},
                              .output = output()});
  EXPECT_EQ(end_of(missing), 127);
}

TEST_F(SideProcessTest, AppendsToItsOutput) {
  for (const char* word : {"one", "two"}) {
    track::SideProcess process(
        shell(std::string("echo ") + word + " $COLOUR; echo err >&2; cat"));
    EXPECT_EQ(end_of(process), 0);
  }
  EXPECT_EQ(text(), "one blue\nerr\ntwo blue\nerr\n");
}

TEST_F(SideProcessTest, InheritsNoOpenFile) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);  // Not closed on exec.
  track::SideProcess process(shell("ls -l /proc/self/fd"));
  EXPECT_EQ(end_of(process), 0);
  testing::expect_not_in(text(), "pipe:");
  close(ends[0]);
  close(ends[1]);
}

TEST_F(SideProcessTest, YieldsToTheTraining) {
  track::SideProcess process(shell("nice; cat /proc/self/oom_score_adj"));
  EXPECT_EQ(end_of(process), 0);
  constexpr int kNicest = 19;
  EXPECT_EQ(text(),
            std::to_string(std::min(nice(0) + 10, kNicest)) + "\n1000\n");
}

TEST_F(SideProcessTest, HasNoSignalBlocked) {
  track::SideProcess process(shell("grep SigBlk /proc/self/status"));
  EXPECT_EQ(end_of(process), 0);
  EXPECT_EQ(text(), "SigBlk:\t0000000000000000\n");
}

TEST_F(SideProcessTest, IsKilledWithItsObject) {
  pid_t pid = 0;
  {
    const track::SideProcess process(shell("exec sleep 1000"));
    pid = process.pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

// A process that is killed ends all its threads.
TEST_F(SideProcessTest, IsKilledWithTheThreadThatStartedIt) {
  std::optional<track::SideProcess> process;
  std::thread([&] { process.emplace(shell("exec sleep 1000")); }).join();
  EXPECT_EQ(end_of(*process), -SIGKILL);
}

TEST_F(SideProcessTest, RefusesAnOutputThatCannotBeOpened) {
  auto program = shell("exit 0");
  program.output = folder_.path() / "no folder" / "output";
  testing::expect_in(testing::refusal<IoError>(
                         [&] { const track::SideProcess process(program); }),
                     "cannot open");
}

}  // namespace
}  // namespace lockstep

#include "lockstep/launch/process_activity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "lockstep/base/files.h"
#include "lockstep/launch/processes.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::Process;
using testing::wait_for;

TEST(ProcessActivity, CountsCpuTimeAndBytes) {
  const launch::ProcessActivity before = launch::activity_of(getpid());
  const base::FileDescriptor zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  std::string buffer(1 << 20, '\0');
  ASSERT_TRUE(wait_for(
      [&] {
        EXPECT_GT(read(zero.get(), buffer.data(), buffer.size()), 0);
        return launch::activity_of(getpid()).cpu_seconds > before.cpu_seconds;
      },
      30));
  const launch::ProcessActivity after = launch::activity_of(getpid());
  EXPECT_GE(after.io_bytes, before.io_bytes + (1 << 20));
  EXPECT_TRUE(launch::has_worked(before, after, 5));
}

TEST(ProcessActivity, CountsThatOfDescendants) {
  Process shell({"sh", "-c",
                 "sh -c 'while true; do :; done' & echo started; wait; true"});
  ASSERT_TRUE(shell.wait_for_output("started"));
  EXPECT_TRUE(wait_for(
      [&] { return launch::activity_of(shell.pid()).cpu_seconds > 0.2; }, 60));
  for (const launch::ProcessInfo& process :
       launch::find_descendants(shell.pid())) {
    kill(process.pid, SIGKILL);
  }
}

TEST(ProcessActivity, ThreadsThatWakeUpNowAndThenAreNoWork) {
  const launch::ProcessActivity before{
      .cpu_seconds = 1, .io_bytes = 7, .major_faults = 3};
  launch::ProcessActivity after = before;
  after.cpu_seconds += 0.2;
  EXPECT_FALSE(launch::has_worked(before, after, 5));
  after.cpu_seconds += 0.1;
  EXPECT_TRUE(launch::has_worked(before, after, 5));
  after = before;
  after.io_bytes += 1;
  EXPECT_TRUE(launch::has_worked(before, after, 5));
  after = before;
  after.major_faults += 1;
  EXPECT_TRUE(launch::has_worked(before, after, 5));
}

TEST(ProcessActivity, NamesTheStateOfAProcess) {
  Process sleeper({"sleep", "60"});
  ASSERT_TRUE(wait_for(
      [&] {
        return launch::waiting_text(sleeper.pid()).starts_with("sleeping");
      },
      10))
      << launch::waiting_text(sleeper.pid());
  sleeper.send(SIGSTOP);
  EXPECT_TRUE(wait_for(
      [&] { return launch::waiting_text(sleeper.pid()) == "stopped"; }, 10));
  EXPECT_EQ(launch::waiting_text(-1), "gone");
}

TEST(ProcessActivity, NamesTheFileThatAProcessWaitsFor) {
  const testing::TempDir folder;
  const std::string pipe = (folder.path() / "pipe").string();
  Process reader(
      {"sh", "-c",
       "mkfifo " + pipe + "; sleep 60 > " + pipe + " & exec cat " + pipe});
  EXPECT_TRUE(wait_for(
      [&] {
        return launch::waiting_text(reader.pid()).ends_with(" on " + pipe);
      },
      10))
      << launch::waiting_text(reader.pid());
  for (const pid_t pid : testing::find_marked(reader.marker())) {
    kill(pid, SIGKILL);
  }
}

TEST(ProcessActivity, NamesTheFileThatAThreadWaitsFor) {
  const testing::TempDir folder;
  const auto path = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const base::FileDescriptor pipe(open(path.c_str(), O_RDWR | O_CLOEXEC));
  std::thread reader([&] {
    char byte = 0;
    EXPECT_EQ(read(pipe.get(), &byte, 1), 1);
  });
  EXPECT_TRUE(wait_for(
      [&] {
        return launch::waiting_text(getpid()).find(" on " + path.string()) !=
               std::string::npos;
      },
      10))
      << launch::waiting_text(getpid());
  EXPECT_TRUE(base::write_all(pipe.get(), "x"));
  reader.join();
}

}  // namespace
}  // namespace lockstep

#include "lockstep/launch/process_activity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lockstep/base/files.h"
#include "lockstep/launch/processes.h"
#include "support/process.h"

namespace lockstep {
namespace {

using testing::Process;
using testing::wait_for;

TEST(ProcessActivity, CountsCpuTimeAndBytes) {
  const ProcessActivity before = activity_of(getpid());
  const FileDescriptor zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  std::string buffer(1 << 20, '\0');
  ASSERT_TRUE(wait_for(
      [&] {
        EXPECT_GT(read(zero.get(), buffer.data(), buffer.size()), 0);
        return activity_of(getpid()).cpu_seconds > before.cpu_seconds;
      },
      30));
  const ProcessActivity after = activity_of(getpid());
  EXPECT_GE(after.io_bytes, before.io_bytes + (1 << 20));
  EXPECT_TRUE(has_worked(before, after, 5));
}

TEST(ProcessActivity, CountsThatOfDescendants) {
  Process shell({"sh", "-c",
                 "sh -c 'while true; do :; done' & echo started; wait; true"});
  ASSERT_TRUE(shell.wait_for_output("started"));
  EXPECT_TRUE(
      wait_for([&] { return activity_of(shell.pid()).cpu_seconds > 0.2; }, 60));
  for (const ProcessInfo& process : find_descendants(shell.pid())) {
    kill(process.pid, SIGKILL);
  }
}

TEST(ProcessActivity, ThreadsThatWakeUpNowAndThenAreNoWork) {
  const ProcessActivity before{
      .cpu_seconds = 1, .io_bytes = 7, .major_faults = 3};
  ProcessActivity after = before;
  after.cpu_seconds += 0.2;
  EXPECT_FALSE(has_worked(before, after, 5));
  after.cpu_seconds += 0.1;
  EXPECT_TRUE(has_worked(before, after, 5));
  after = before;
  after.io_bytes += 1;
  EXPECT_TRUE(has_worked(before, after, 5));
  after = before;
  after.major_faults += 1;
  EXPECT_TRUE(has_worked(before, after, 5));
}

TEST(ProcessActivity, NamesTheStateOfAProcess) {
  Process sleeper({"sleep", "60"});
  ASSERT_TRUE(wait_for(
      [&] { return waiting_text(sleeper.pid()).starts_with("sleeping"); }, 10))
      << waiting_text(sleeper.pid());
  sleeper.send(SIGSTOP);
  EXPECT_TRUE(
      wait_for([&] { return waiting_text(sleeper.pid()) == "stopped"; }, 10));
  EXPECT_EQ(waiting_text(-1), "gone");
}

}  // namespace
}  // namespace lockstep

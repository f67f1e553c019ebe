#include "lockstep/base/status.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "unit/base/status_environment.h"

namespace lockstep {
namespace {

using testing::environment_of;

TEST(StatusPage, AForeignProgramLeavesItUntouched) {
  EXPECT_FALSE(base::StatusReader().read());
}

TEST(StatusPage, TheReaderSeesWhatTheWriterSays) {
  const base::StatusReader reader;
  auto writer = base::StatusWriter::from_environment(environment_of(reader));
  writer.set_place(2, 4);
  writer.set_phase(base::Phase::kBackward);
  writer.set_step(11);
  writer.set_memory(100, 200);
  writer.set_timeout(2.5);
  EXPECT_EQ(writer.start_collective(base::Collective::kBroadcast, 64), 1);
  writer.finish_collective();
  EXPECT_EQ(writer.start_collective(base::Collective::kAllReduce, 1024), 2);
  const auto status = reader.read();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->pid, getpid());
  EXPECT_EQ(status->rank, 2);
  EXPECT_EQ(status->world_size, 4);
  EXPECT_EQ(status->phase, base::Phase::kBackward);
  EXPECT_EQ(status->step, 11);
  EXPECT_EQ(status->host_bytes, 100);
  EXPECT_EQ(status->device_bytes, 200);
  EXPECT_EQ(status->timeout_seconds, 2.5);
  EXPECT_EQ(status->collective, base::Collective::kAllReduce);
  EXPECT_EQ(status->collectives_started, 2);
  EXPECT_EQ(status->collectives_finished, 1);
  EXPECT_EQ(status->collective_bytes, 1024);
  EXPECT_LT(status->silent_seconds, 10);
}

TEST(StatusPage, KnowsHowLongPhasesAndStepsTake) {
  const base::StatusReader reader;
  auto writer = base::StatusWriter::from_environment(environment_of(reader));
  writer.set_step(0);
  EXPECT_EQ(reader.read()->step_seconds, 0);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(reader.read()->phase_p99_seconds);
    writer.set_phase(base::Phase::kForward);
    writer.set_phase(base::Phase::kBackward);
  }
  // Known of forward, which has ended 20 times, and not of this stay.
  EXPECT_FALSE(reader.read()->phase_p99_seconds);
  writer.set_phase(base::Phase::kForward);
  EXPECT_TRUE(reader.read()->phase_p99_seconds);
  EXPECT_GT(reader.read()->heartbeat_ns, 0);
  writer.set_step(1);
  EXPECT_GT(reader.read()->step_seconds, 0);
}

TEST(StatusPage, NobodyCanChangeItsSize) {
  const base::StatusReader reader;
  EXPECT_NE(ftruncate(reader.fd(), 0), 0);
  EXPECT_NE(ftruncate(reader.fd(), 8192), 0);
  EXPECT_FALSE(reader.read());
}

TEST(StatusPage, SurvivesTheDeathOfTheWriter) {
  const base::StatusReader reader;
  const pid_t pid = fork();
  if (pid == 0) {
    auto writer = base::StatusWriter::from_environment(environment_of(reader));
    writer.set_step(7);
    kill(getpid(), SIGKILL);
  }
  waitpid(pid, nullptr, 0);
  ASSERT_TRUE(reader.read());
  EXPECT_EQ(reader.read()->step, 7);
}

TEST(StatusWriter, WorksWithoutLauncherAndWithAWrongDescriptor) {
  base::StatusWriter alone;
  EXPECT_EQ(alone.start_collective(base::Collective::kVote, 0), 1);
  EXPECT_NO_THROW(base::StatusWriter::from_environment({}).set_step(1));
  EXPECT_NO_THROW(
      base::StatusWriter::from_environment({{"LOCKSTEP_STATUS_FD", "0"}})
          .set_step(1));
}

}  // namespace
}  // namespace lockstep

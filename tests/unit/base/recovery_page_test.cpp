#include "lockstep/base/recovery_page.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "lockstep/base/files.h"
#include "lockstep/base/status.h"
#include "unit/base/status_environment.h"

namespace lockstep::base {
namespace {

// Longer than the test may take: who returns has been woken.
constexpr std::chrono::hours kForEver{24};

class RecoveryPageTest : public ::testing::Test {
 protected:
  StatusReader status_;
  RecoveryReader launcher_{status_.fd()};
  RecoveryWriter worker_ =
      RecoveryWriter::from_environment(testing::environment_of(status_));
};

TEST_F(RecoveryPageTest, ASuspendedWorkerWaitsUntilAGenerationIsAnnounced) {
  EXPECT_FALSE(worker_.is_suspended());
  launcher_.suspend();
  EXPECT_TRUE(worker_.is_suspended());
  EXPECT_EQ(worker_.generation(), 0);
  EXPECT_TRUE(launcher_.announce(3));
  EXPECT_FALSE(worker_.is_suspended());
  EXPECT_EQ(worker_.generation(), 3);
}

TEST_F(RecoveryPageTest, EverySuspensionIsAnInterrupt) {
  const uint32_t before = worker_.interrupts();
  launcher_.suspend();
  EXPECT_EQ(worker_.interrupts(), before + 1);
  launcher_.announce(1);
  EXPECT_EQ(worker_.interrupts(), before + 1);
  launcher_.suspend();
  EXPECT_EQ(worker_.interrupts(), before + 2);
}

TEST_F(RecoveryPageTest, AnInterruptEndsTheWaitOfAnotherProcess) {
  for (int turn = 0; turn < 20; ++turn) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const FileDescriptor begun(ends[0]);
    FileDescriptor begin(ends[1]);
    const uint32_t seen = worker_.interrupts();
    const pid_t child = fork();
    if (child == 0) {
      begin.reset();
      while (worker_.interrupts() == seen) {
        worker_.wait_for_interrupt(seen, kForEver);
      }
      _exit(0);
    }
    begin.reset();
    char nothing = 0;
    EXPECT_EQ(read(begun.get(), &nothing, 1), 0);
    launcher_.suspend();
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(RecoveryPageTest, NobodyWaitsForAnInterruptThatHasBeen) {
  const uint32_t seen = worker_.interrupts();
  launcher_.suspend();
  worker_.wait_for_interrupt(seen, kForEver);
}

TEST_F(RecoveryPageTest, AWaitForAnInterruptHasALimit) {
  worker_.wait_for_interrupt(worker_.interrupts(),
                             std::chrono::milliseconds(1));
  EXPECT_EQ(worker_.interrupts(), 0u);
}

TEST_F(RecoveryPageTest, AProcessCanEndItsOwnWaits) {
  std::atomic<bool> has_returned = false;
  std::thread waiting([&] {
    worker_.wait_for_interrupt(worker_.interrupts(), kForEver);
    has_returned = true;
  });
  // One that comes before the wait ends nothing.
  while (!has_returned) {
    worker_.wake_waiting();
    std::this_thread::yield();
  }
  waiting.join();
  EXPECT_FALSE(worker_.is_suspended());
}

}  // namespace
}  // namespace lockstep::base

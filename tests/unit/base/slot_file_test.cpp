#include "lockstep/base/slot_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::base {
namespace {

TEST(SlotFile, KeepsTwoVersionsOfEachText) {
  SlotFile file;
  EXPECT_FALSE(file.newest(0));
  EXPECT_FALSE(file.read(0, 0));
  file.write(0, 7, "seven");
  file.write(0, 8, "eight");
  file.write(1, 3, "");
  EXPECT_EQ(file.newest(0), 8);
  EXPECT_EQ(file.read(0, 7), "seven");
  EXPECT_EQ(file.read(0, 8), "eight");
  EXPECT_EQ(file.read(1, 3), "");
  file.write(0, 9, std::string(100000, 'x'));
  EXPECT_FALSE(file.read(0, 7));
  EXPECT_EQ(file.read(0, 8), "eight");
  EXPECT_EQ(file.read(0, 9), std::string(100000, 'x'));
  file.write(0, 9, "shorter");
  EXPECT_EQ(file.read(0, 9), "shorter");
}

TEST(SlotFile, OutlivesItsWriterWholeWheneverThatIsKilled) {
  SlotFile file;
  file.write(0, 0, std::string(1 << 20, '0'));
  for (int turn = 0; turn < 20; ++turn) {
    // It goes on after the version that is whole, as a rank does.
    const int64_t first = file.newest(0).value() + 1;
    const pid_t child = fork();
    if (child == 0) {
      for (int64_t number = first;; ++number) {
        file.write(0, number,
                   std::string(1 << 20, static_cast<char>('0' + number % 10)));
      }
    }
    usleep(static_cast<useconds_t>(3000 + 700 * turn));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const auto newest = file.newest(0);
    ASSERT_TRUE(newest);
    EXPECT_EQ(file.read(0, *newest),
              std::string(1 << 20, static_cast<char>('0' + *newest % 10)));
  }
}

TEST(SlotFile, IsFoundByItsDescriptorOnly) {
  SlotFile file;
  file.write(0, 5, "five");
  const auto found = SlotFile::from_environment(
      {{kSlotFileVariable, std::to_string(file.fd())}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->read(0, 5), "five");
  EXPECT_FALSE(SlotFile::from_environment({}));
  EXPECT_FALSE(SlotFile::from_environment({{kSlotFileVariable, "0"}}));
}

}  // namespace
}  // namespace lockstep::base

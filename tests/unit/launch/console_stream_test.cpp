#include "lockstep/launch/console_stream.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace lockstep {
namespace {

TEST(ConsoleStream, KeepsWhatASlowReaderDoesNotTake) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  launch::ConsoleStream console(ends[1]);
  const std::string text(300'000, 'x');
  console.write(text);
  console.flush();
  EXPECT_TRUE(console.has_pending());
  size_t total = 0;
  std::array<char, 65536> buffer;
  while (total < text.size()) {
    const ssize_t count = read(ends[0], buffer.data(), buffer.size());
    ASSERT_GT(count, 0);
    total += static_cast<size_t>(count);
    console.flush();
  }
  EXPECT_FALSE(console.has_pending());
  close(ends[0]);
  close(ends[1]);
}

TEST(ConsoleStream, DropsTextWhenTheReaderIsGone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  signal(SIGPIPE, SIG_IGN);
  launch::ConsoleStream console(ends[1]);
  console.write("text");
  console.flush();
  EXPECT_TRUE(console.is_broken());
  EXPECT_FALSE(console.has_pending());
  signal(SIGPIPE, SIG_DFL);
  close(ends[1]);
}

// All that a stream writes, with its bytes visible.
class OnTerminal : public ::testing::Test {
 protected:
  OnTerminal() { EXPECT_EQ(pipe(ends_), 0); }
  ~OnTerminal() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  std::string written(launch::ConsoleStream& console) const {
    console.write("|", 0);
    console.flush();
    std::array<char, 4096> buffer;
    const ssize_t count = read(ends_[0], buffer.data(), buffer.size());
    return {buffer.data(), static_cast<size_t>(std::max<ssize_t>(0, count))};
  }

  int ends_[2];
};

TEST_F(OnTerminal, AFrameStaysBelowTheLinesOfOthers) {
  launch::ConsoleStream console(ends_[1], 80);
  console.write("a\n", 1);
  console.write("bar 1\r", 0);
  console.write("bar 2\r", 0);
  console.write("b\n", 1);
  EXPECT_EQ(written(console), "a\nbar 1\rbar 2\r\x1b[Kb\nbar 2\r|");
}

TEST_F(OnTerminal, ItsOwnWriterEndsAFrame) {
  launch::ConsoleStream console(ends_[1], 80);
  console.write("bar\r", 0);
  console.write("done\n", 0);
  console.write("b\n", 1);
  EXPECT_EQ(written(console), "bar\rdone\nb\n|");
}

TEST_F(OnTerminal, AFrameWhoseWriterLeavesBecomesALine) {
  launch::ConsoleStream console(ends_[1], 80);
  console.write("bar\r", 0);
  console.leave(1);
  console.leave(0);
  console.leave(0);
  console.write("b\n", 1);
  EXPECT_EQ(written(console), "bar\r\nb\n|");
}

TEST_F(OnTerminal, AFrameDoesNotCutALineThatHasNoEndYet) {
  launch::ConsoleStream console(ends_[1], 80);
  console.write("bar\r", 0);
  console.write("half", 1);
  console.write(" line\n", 1);
  EXPECT_EQ(written(console), "bar\r\x1b[Khalf line\n|");
}

TEST_F(OnTerminal, ElsewhereBytesStayAsTheyAre) {
  launch::ConsoleStream console(ends_[1]);
  console.write("bar\r", 0);
  console.write("b\n", 1);
  console.write("c\n");
  EXPECT_EQ(written(console), "bar\rb\nc\n|");
}

TEST(ConsoleStream, FlushAllGivesUpWhenToldSo) {
  int ends[2];
  int cancel[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(pipe(cancel), 0);
  launch::ConsoleStream console(ends[1]);
  console.write(std::string(300'000, 'x'));
  ASSERT_EQ(write(cancel[1], "x", 1), 1);
  std::array<launch::ConsoleStream*, 1> consoles = {&console};
  launch::flush_all(consoles, cancel[0]);
  EXPECT_TRUE(console.has_pending());
  for (const int fd : {ends[0], ends[1], cancel[0], cancel[1]}) close(fd);
}

}  // namespace
}  // namespace lockstep

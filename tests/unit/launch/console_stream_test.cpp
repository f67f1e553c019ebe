#include "lockstep/launch/console_stream.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace lockstep {
namespace {

TEST(ConsoleStream, KeepsWhatASlowReaderDoesNotTake) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ConsoleStream console(ends[1]);
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
  ConsoleStream console(ends[1]);
  console.write("text");
  console.flush();
  EXPECT_TRUE(console.is_broken());
  EXPECT_FALSE(console.has_pending());
  signal(SIGPIPE, SIG_DFL);
  close(ends[1]);
}

TEST(ConsoleStream, FlushAllGivesUpWhenToldSo) {
  int ends[2];
  int cancel[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(pipe(cancel), 0);
  ConsoleStream console(ends[1]);
  console.write(std::string(300'000, 'x'));
  ASSERT_EQ(write(cancel[1], "x", 1), 1);
  std::array<ConsoleStream*, 1> consoles = {&console};
  flush_all(consoles, cancel[0]);
  EXPECT_TRUE(console.has_pending());
  for (const int fd : {ends[0], ends[1], cancel[0], cancel[1]}) close(fd);
}

}  // namespace
}  // namespace lockstep

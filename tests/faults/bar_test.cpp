// What a person at a terminal sees of a job with a progress bar.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "faults/launcher.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/track/progress.h"
#include "support/terminal.h"

namespace lockstep::testing {
namespace {

constexpr int kColumns = 60;
constexpr const char* kBorder =
    "============================================================";

std::string bar(int64_t step) {
  return track::bar_text({.step = step, .total_steps = 100},
                         {.columns = kColumns});
}

class Bar : public ::testing::Test {
 protected:
  Bar() {
    for (size_t rank = 0; rank < orders_.size(); ++rank) {
      const auto path = folder_.path() / std::to_string(rank);
      EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
      orders_[rank] =
          base::FileDescriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
    }
  }

  Words command(const Words& options) const {
    Words words = job(options);
    words.push_back(LOCKSTEP_BAR_WORKER);
    words.push_back(folder_.path().string());
    return words;
  }

  ProcessOptions at_terminal(const std::string& term = "xterm") const {
    return {.environment = {{"OMP_NUM_THREADS", "1"}, {"TERM", term}},
            .terminal_fd = terminal_.worker_fd()};
  }

  void tell(size_t rank, const std::string& order) const {
    base::write_all(orders_[rank].get(), order + "\n");
  }

  void tell_all(const std::string& order) const {
    for (size_t rank = 0; rank < orders_.size(); ++rank) tell(rank, order);
  }

  void expect_seen(const Words& lines) {
    wait_for([&] { return terminal_.lines() == lines; }, 10);
    EXPECT_EQ(terminal_.lines(), lines);
  }

  // The end of a line is made "\r\n" by the terminal itself.
  void expect_only_plain_lines() {
    const std::string text = base::replace_all(terminal_.bytes(), "\r\n", "\n");
    EXPECT_EQ(text.find_first_of("\r\x1b"), std::string::npos) << text;
  }

  TempDir folder_;
  std::array<base::FileDescriptor, 2> orders_;
  Terminal terminal_{kColumns};
};

TEST_F(Bar, IsSeenAtOnceAndMessagesStandAboveIt) {
  Process process(command({"--nproc=2"}), at_terminal());
  tell(0, "bar 40");
  expect_seen({bar(40)});
  tell(1, "warn slow");
  expect_seen({"rank 1: warning: slow", bar(40)});
  tell(0, "info saved");
  expect_seen({"rank 1: warning: slow", "saved", bar(40)});
  tell(0, "warn hot");
  expect_seen({"rank 1: warning: slow", "saved", "warning: hot", bar(40)});
  tell(0, "bar 50");
  expect_seen({"rank 1: warning: slow", "saved", "warning: hot", bar(50)});
  tell(0, "finish");
  tell(0, "info done");
  tell_all("end");
  EXPECT_EQ(process.wait().exit_code, 0);
  expect_seen(
      {"rank 1: warning: slow", "saved", "warning: hot", bar(50), "done"});
}

TEST_F(Bar, NothingIsLostOrLeftOverInACrowd) {
  Process process(command({"--nproc=2"}), at_terminal());
  Words expected = {bar(99)};
  for (int i = 0; i < 100; ++i) {
    const std::string number = std::to_string(i);
    tell(0, "bar " + number);
    tell(0, (i % 2 == 0 ? "warn " : "info ") + number);
    tell(1, "warn " + number);
    expected.push_back((i % 2 == 0 ? "warning: " : "") + number);
    expected.push_back("rank 1: warning: " + number);
  }
  tell(0, "finish");
  tell_all("end");
  std::sort(expected.begin(), expected.end());
  const auto sorted = [this] {
    Words lines = terminal_.lines();
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  wait_for([&] { return sorted() == expected; }, 10);
  EXPECT_EQ(process.wait().exit_code, 0);
  EXPECT_EQ(sorted(), expected);
}

TEST_F(Bar, OfADeadWorkerStandsAboveTheReport) {
  Process process(command({"--nproc=2"}), at_terminal());
  tell(0, "bar 40");
  expect_seen({bar(40)});
  tell(0, "kill");
  EXPECT_EQ(process.wait().exit_code, 128 + SIGKILL);
  const Words lines = terminal_.lines();
  ASSERT_GT(lines.size(), 2u);
  EXPECT_EQ(lines[0], bar(40));
  EXPECT_EQ(lines[1], kBorder);
  EXPECT_EQ(lines.back(), kBorder);
}

TEST_F(Bar, StaysBelowTheWordsOfTheLauncher) {
  Process process(command({"--nproc=2"}), at_terminal());
  tell(0, "bar 40");
  expect_seen({bar(40)});
  process.send(SIGINT);
  EXPECT_EQ(process.wait().exit_code, 128 + SIGINT);
  expect_seen({"lockstep: SIGINT received, ending 2 processes", bar(40)});
}

TEST_F(Bar, OfALoneWorkerLeavesNothingBehindTheWordsOfTheLauncher) {
  Process process(command({"--nproc=1"}), at_terminal());
  tell(0, "bar 40");
  expect_seen({bar(40)});
  process.send(SIGINT);
  EXPECT_EQ(process.wait().exit_code, 128 + SIGINT);
  expect_seen({"lockstep: SIGINT received, ending 1 process"});
}

// Instead of a bar at step 40.
constexpr const char* kFirstLine = "step 40/100 eta ?";

TEST_F(Bar, IsNotDrawnOnADumbTerminal) {
  Process process(command({"--nproc=2"}), at_terminal("dumb"));
  tell(0, "bar 40");
  tell(0, "info saved");
  tell_all("end");
  EXPECT_EQ(process.wait().exit_code, 0);
  expect_seen({kFirstLine, "saved"});
  expect_only_plain_lines();
}

TEST_F(Bar, IsNotDrawnBehindAPrefixOrIntoALog) {
  const std::string logs = folder_.path() / "logs";
  Process process(command({"--nproc=2", "-t1", "--log-dir", logs}),
                  at_terminal());
  tell(0, "bar 40");
  tell(0, "info saved");
  tell_all("end");
  EXPECT_EQ(process.wait().exit_code, 0);
  expect_seen({std::string("[default0]:") + kFirstLine, "[default0]:saved"});
  expect_only_plain_lines();
}

TEST_F(Bar, IsNotDrawnIntoAFile) {
  // As if a launcher around this one had a terminal.
  Process process(command({"--nproc=2"}),
                  {.environment = {{"OMP_NUM_THREADS", "1"},
                                   {"TERM", "xterm"},
                                   {"LOCKSTEP_TERMINAL_COLUMNS", "80"}}});
  tell(0, "bar 40");
  tell(0, "info saved");
  tell(0, "finish");
  tell_all("end");
  const auto result = process.wait();
  EXPECT_EQ(result.out, std::string(kFirstLine) + "\nsaved\n");
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace lockstep::testing

#include "lockstep/launch/error_lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "lockstep/base/files.h"
#include "lockstep/launch/ranks_text.h"

namespace lockstep {
namespace {

using launch::ErrorLines;
using launch::ranks_text;

constexpr int64_t kSecond = 1'000'000'000;

TEST(RanksText, NamesAllOrRanges) {
  EXPECT_EQ(ranks_text(std::array{0, 1, 2, 3}, 4), "all 4 ranks");
  EXPECT_EQ(ranks_text(std::array{0, 2, 3}, 4), "ranks 0, 2-3");
  EXPECT_EQ(ranks_text(std::array{0, 1, 2, 5, 7}, 8), "ranks 0-2, 5, 7");
  EXPECT_EQ(ranks_text(std::array{1}, 4), "rank 1");
}

// Errors of three ranks, and the console that shows them.
class ErrorLinesTest : public ::testing::Test {
 protected:
  ErrorLinesTest() : ErrorLinesTest(open_pipe()) {}

  // What was shown since the last call.
  std::string shown() {
    stream_.flush();
    std::array<char, 65536> buffer{};
    const ssize_t count = read(reader_.get(), buffer.data(), buffer.size());
    return count > 0 ? std::string(buffer.data(), static_cast<size_t>(count))
                     : "";
  }

  ErrorLines& errors() { return errors_; }

 private:
  static std::array<int, 2> open_pipe() {
    std::array<int, 2> ends = {-1, -1};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    return ends;
  }

  explicit ErrorLinesTest(const std::array<int, 2>& ends)
      : reader_(ends[0]), writer_(ends[1]), stream_(ends[1]) {}

  base::FileDescriptor reader_;
  base::FileDescriptor writer_;
  launch::ConsoleStream stream_;
  ErrorLines errors_{stream_, 3};
};

TEST_F(ErrorLinesTest, WhatAllRanksSayIsPrintedOnce) {
  for (int rank = 0; rank < 3; ++rank) {
    const std::string prefix = "[rank" + std::to_string(rank) + "]: ";
    EXPECT_TRUE(errors().take(rank, prefix + "ConfigError: bad --lr\n", 0));
    EXPECT_TRUE(errors().take(rank, prefix + "  give a number\n", 0));
    errors().set_end(rank, 2);
  }
  errors().release(kSecond);
  EXPECT_EQ(shown(), "");
  errors().finish();
  EXPECT_EQ(shown(), "ConfigError on all 3 ranks: bad --lr\n  give a number\n");
}

TEST_F(ErrorLinesTest, DifferentErrorsKeepTheirRanks) {
  errors().take(0, "[rank0]: IoError: disk\n", 0);
  errors().take(1, "[rank1]: PeerError: rank 0 left\n", 0);
  errors().take(2, "[rank2]: IoError: disk\n", 0);
  for (int rank = 0; rank < 3; ++rank) errors().set_end(rank, 1);
  errors().finish();
  EXPECT_EQ(shown(),
            "IoError on ranks 0, 2: disk\n[rank1]: PeerError: rank 0 left\n");
}

TEST_F(ErrorLinesTest, RanksThatRepeatAnothersErrorAreLeftOut) {
  errors().take(0, "[rank0]: ConfigError: no folder\n", 0);
  errors().take(1, "[rank1]: PeerError: rank 0 failed: no folder\n", 0);
  errors().take(2, "[rank2]: PeerError: rank 0 failed: no disk\n", 0);
  for (int rank = 0; rank < 3; ++rank) errors().set_end(rank, 2);
  errors().finish();
  EXPECT_EQ(shown(),
            "[rank0]: ConfigError: no folder\n"
            "[rank2]: PeerError: rank 0 failed: no disk\n");
}

TEST_F(ErrorLinesTest, ALateRepetitionIsLeftOutToo) {
  errors().take(0, "[rank0]: ConfigError: no folder\n", 0);
  errors().set_end(0, 2);
  errors().release(ErrorLines::kAgreeNs);
  EXPECT_EQ(shown(), "[rank0]: ConfigError: no folder\n");
  errors().take(1, "[rank1]: PeerError: rank 0 failed: no folder\n", 0);
  errors().set_end(1, 5);
  errors().finish();
  EXPECT_EQ(shown(), "");
}

TEST_F(ErrorLinesTest, ATracebackHasNoKindInFront) {
  for (int rank = 0; rank < 3; ++rank) {
    const std::string prefix = "[rank" + std::to_string(rank) + "]: ";
    errors().take(rank, prefix + "Traceback (most recent call last):\n", 0);
    errors().take(rank, prefix + "ValueError: x\n", 0);
    errors().set_end(rank, 1);
  }
  errors().finish();
  EXPECT_EQ(shown(),
            "on all 3 ranks:\nTraceback (most recent call last):\n"
            "ValueError: x\n");
}

TEST_F(ErrorLinesTest, LinesOfARunningRankAreDelayedAndUnchanged) {
  EXPECT_FALSE(errors().take(0, "plain\n", 0));
  EXPECT_FALSE(errors().take(0, "[rank1]: of another\n", 0));
  EXPECT_TRUE(errors().take(0, "[rank0]: epoch 1\n", 0));
  EXPECT_TRUE(errors().take(1, "[rank1]: epoch 1\n", 0));
  EXPECT_EQ(errors().next_release_ns(), ErrorLines::kAliveNs);
  errors().release(ErrorLines::kAliveNs - 1);
  EXPECT_EQ(shown(), "");
  errors().release(ErrorLines::kAliveNs);
  EXPECT_EQ(shown(), "[rank0]: epoch 1\n[rank1]: epoch 1\n");
  EXPECT_EQ(errors().next_release_ns(), std::nullopt);
}

TEST_F(ErrorLinesTest, ALineBehindThemKeepsTheOrder) {
  EXPECT_TRUE(errors().take(0, "[rank0]: epoch 1\n", 0));
  EXPECT_FALSE(errors().take(0, "plain\n", 0));
  EXPECT_EQ(shown(), "[rank0]: epoch 1\n");
}

TEST_F(ErrorLinesTest, ARankThatLeavesWithZeroHasNoError) {
  errors().take(0, "[rank0]: bye\n", 0);
  errors().take(1, "[rank1]: bye\n", 0);
  errors().set_end(0, 0);
  errors().release(1);
  EXPECT_EQ(shown(), "[rank0]: bye\n");
  errors().finish();
  EXPECT_EQ(shown(), "[rank1]: bye\n");
}

TEST_F(ErrorLinesTest, AnErrorDoesNotWaitForRanksThatLiveOn) {
  errors().take(0, "[rank0]: IoError: disk\n", kSecond);
  errors().set_end(0, 4);
  errors().release(kSecond + ErrorLines::kAgreeNs - 1);
  EXPECT_EQ(shown(), "");
  errors().release(kSecond + ErrorLines::kAgreeNs);
  EXPECT_EQ(shown(), "[rank0]: IoError: disk\n");
}

TEST_F(ErrorLinesTest, WhatIsHeldIsWrittenBeforeTheRanksChange) {
  errors().take(0, "[rank0]: PeerError: rank 2 is gone\n", 0);
  errors().take(1, "[rank1]: epoch 1\n", 0);
  errors().set_num_ranks(2);
  EXPECT_EQ(shown(), "[rank0]: PeerError: rank 2 is gone\n[rank1]: epoch 1\n");
}

TEST_F(ErrorLinesTest, RanksOfAJobOfAnotherSizeBeginAnew) {
  errors().set_end(0, 1);
  errors().set_num_ranks(2);
  errors().take(0, "[rank0]: IoError: disk\n", 0);
  EXPECT_EQ(errors().next_release_ns(), ErrorLines::kAliveNs);
  errors().take(1, "[rank1]: IoError: disk\n", 0);
  for (int rank = 0; rank < 2; ++rank) errors().set_end(rank, 4);
  errors().finish();
  EXPECT_EQ(shown(), "IoError on all 2 ranks: disk\n");
}

TEST_F(ErrorLinesTest, AFloodIsNotHeld) {
  const std::string line = "[rank0]: " + std::string(40'000, 'x') + "\n";
  EXPECT_TRUE(errors().take(0, line, 0));
  EXPECT_FALSE(errors().take(0, line, 0));
  EXPECT_EQ(shown(), line);
}

}  // namespace
}  // namespace lockstep

#include "lockstep/track/console.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

constexpr const char* kErase = "\r\x1b[K\r";

// A console with texts, clock and terminal of the test.
class ConsoleTest : public ::testing::Test {
 protected:
  track::ConsoleOutput output() {
    return {.out = [this](std::string_view text) { out_ += text; },
            .err = [this](std::string_view text) { err_ += text; },
            .columns = [this] { return columns_; },
            .now_ns = [this] { return now_ns_; },
            .wall_seconds = [] { return int64_t{1'772'356'502}; }};
  }

  std::string take_out() { return std::exchange(out_, {}); }

  // A line of the log file, as written at the test's time.
  static std::string logged(const std::string& text) {
    return base::replace_all(base::local_timestamp(1'772'356'502), "_", " ") +
           " - " + text + "\n";
  }

  std::string log_path() const { return folder_.path() / "train.log"; }

  static track::ProgressState at_step(int64_t step) {
    return {.step = step, .total_steps = 100};
  }

  std::string drawn(int64_t step) const {
    return "\r" + track::bar_text(at_step(step), {.columns = columns_}) +
           "\x1b[K\r";
  }

  testing::TempDir folder_;
  std::string out_;
  std::string err_;
  int columns_ = 0;
  int64_t now_ns_ = 5'000'000'000;
};

TEST_F(ConsoleTest, InformationAndTroubleGoToDifferentStreams) {
  track::Console console({}, output());
  console.info("two\nlines");
  console.warn("hot\n");
  console.error("broken");
  EXPECT_EQ(out_, "two\nlines\n");
  EXPECT_EQ(err_, "warning: hot\nerror: broken\n");
}

TEST_F(ConsoleTest, AQuietRankSaysOnlyTroubleAndItsRank) {
  columns_ = 80;
  track::Console console({.rank = 3, .speaks = false}, output());
  console.open_log(log_path());
  console.info("hello");
  console.progress(at_step(1));
  console.progress_line(at_step(1));
  console.finish_progress();
  console.warn("hot");
  console.error("broken");
  EXPECT_EQ(out_, "");
  EXPECT_EQ(err_, "rank 3: warning: hot\nrank 3: error: broken\n");
  EXPECT_FALSE(std::filesystem::exists(log_path()));
}

TEST_F(ConsoleTest, AProcessThatBecomesTheMainRankSpeaks) {
  track::Console console({.rank = 3, .speaks = false}, output());
  console.info("before");
  console.progress(at_step(1));
  console.set_rank(0, /*speaks=*/true);
  console.open_log(log_path());
  console.info("after");
  console.warn("hot");
  console.progress_line(at_step(2));
  EXPECT_EQ(out_, "after\n" + track::line_text(at_step(2)) + "\n");
  EXPECT_EQ(err_, "warning: hot\n");
  EXPECT_EQ(base::read_file(log_path()),
            logged("INFO - after") + logged("WARNING - hot") +
                logged("INFO - " + track::line_text(at_step(2))));
}

TEST_F(ConsoleTest, AProcessThatIsNotTheMainRankAnyMoreIsQuiet) {
  track::Console console({}, output());
  console.open_log(log_path());
  console.info("before");
  console.set_rank(2, /*speaks=*/false);
  console.info("after");
  console.warn("hot");
  console.progress(at_step(1));
  console.progress_line(at_step(1));
  console.log_error("broken");
  EXPECT_EQ(out_, "before\n");
  EXPECT_EQ(err_, "rank 2: warning: hot\n");
  EXPECT_EQ(base::read_file(log_path()), logged("INFO - before"));
}

TEST_F(ConsoleTest, TheDisplayStaysThatOfTheSettingWhenTheRankChanges) {
  columns_ = 60;
  track::Console console({.rank = 1, .speaks = false}, output());
  console.set_rank(0, /*speaks=*/true);
  console.progress(at_step(1));
  EXPECT_EQ(take_out(), drawn(1));
  track::Console none(
      {.rank = 1, .speaks = false, .progress = track::ProgressDisplay::kNone},
      output());
  none.set_rank(0, /*speaks=*/true);
  none.progress(at_step(1));
  EXPECT_EQ(take_out(), "");
}

TEST_F(ConsoleTest, WithoutATerminalProgressIsLines) {
  track::Console console({}, output());
  console.progress({.label = "validate", .step = 1});
  EXPECT_EQ(out_, "");
  console.progress_line(at_step(2));
  console.finish_progress();
  EXPECT_EQ(out_, track::line_text(at_step(2)) + "\n");
}

TEST_F(ConsoleTest, OnATerminalProgressIsABar) {
  columns_ = 60;
  track::Console console({}, output());
  console.progress(at_step(1));
  EXPECT_EQ(take_out(), drawn(1));
  console.progress_line(at_step(1));
  EXPECT_EQ(take_out(), "");
  console.finish_progress();
  EXPECT_EQ(take_out(), drawn(1) + "\n");
  console.finish_progress();
  EXPECT_EQ(take_out(), "");
}

TEST_F(ConsoleTest, TheDisplayCanBeChosen) {
  columns_ = 60;
  {
    track::Console console({.progress = track::ProgressDisplay::kNone},
                           output());
    console.progress(at_step(1));
    console.progress_line(at_step(1));
    EXPECT_EQ(out_, "");
  }
  {
    track::Console console({.progress = track::ProgressDisplay::kLines},
                           output());
    console.progress({.label = "validate", .step = 1});
    console.progress_line(at_step(1));
    EXPECT_EQ(take_out(), track::line_text(at_step(1)) + "\n");
  }
  columns_ = 0;
  track::Console console({.progress = track::ProgressDisplay::kBar}, output());
  console.progress(at_step(1));
  columns_ = 80;
  EXPECT_EQ(take_out(), drawn(1));
}

TEST_F(ConsoleTest, TheBarIsDrawnTenTimesASecond) {
  columns_ = 60;
  track::Console console({}, output());
  int drawings = 0;
  for (int step = 0; step < 2000; ++step) {
    console.progress(at_step(step));
    if (!take_out().empty()) ++drawings;
    now_ns_ += 1'000'000;
  }
  EXPECT_EQ(drawings, 20);
  console.finish_progress();
  EXPECT_EQ(take_out(), drawn(1999) + "\n");
}

TEST_F(ConsoleTest, ANewLabelIsShownAtOnce) {
  columns_ = 60;
  track::Console console({}, output());
  console.progress(at_step(1));
  take_out();
  console.progress({.label = "validate", .step = 1, .total_steps = 4});
  EXPECT_NE(take_out().find("validate"), std::string::npos);
  console.progress(at_step(2));
  EXPECT_EQ(take_out(), drawn(2));
}

TEST_F(ConsoleTest, TheBarFollowsTheWidthOfTheTerminal) {
  columns_ = 60;
  track::Console console({}, output());
  console.progress(at_step(1));
  take_out();
  columns_ = 30;
  now_ns_ += 1'000'000'000;
  console.progress(at_step(2));
  EXPECT_EQ(take_out(), drawn(2));
}

TEST_F(ConsoleTest, MessagesStandAboveTheBar) {
  columns_ = 60;
  track::Console console({}, output());
  console.progress(at_step(1));
  console.progress(at_step(2));
  take_out();
  console.info("saved");
  EXPECT_EQ(take_out(), std::string(kErase) + "saved\n" + drawn(2));
  console.warn("slow");
  EXPECT_EQ(take_out(), kErase + drawn(2));
  EXPECT_EQ(err_, "warning: slow\n");
}

TEST_F(ConsoleTest, TheEndLeavesNoHalfLine) {
  columns_ = 60;
  {
    track::Console console({}, output());
    console.progress(at_step(1));
  }
  EXPECT_TRUE(out_.ends_with("\n"));
}

TEST_F(ConsoleTest, WithoutATerminalTheFirstStepIsShownAndThenALineAMinute) {
  constexpr int64_t kMinuteNs = 60'000'000'000;
  track::Console console({}, output());
  EXPECT_TRUE(console.is_line_due("train"));
  console.progress(at_step(1));
  EXPECT_EQ(take_out(), track::line_text(at_step(1)) + "\n");
  now_ns_ += kMinuteNs - 1;
  EXPECT_FALSE(console.is_line_due("train"));
  console.progress(at_step(2));
  EXPECT_EQ(take_out(), "");
  now_ns_ += 1;
  console.progress({.label = "validate", .step = 3});
  EXPECT_EQ(take_out(), "validate step 3\n");
  // A log line counts as well.
  now_ns_ += kMinuteNs - 1;
  console.progress_line(at_step(4));
  take_out();
  now_ns_ += kMinuteNs - 1;
  console.progress(at_step(5));
  EXPECT_EQ(take_out(), "");
}

TEST_F(ConsoleTest, LinesBetweenLogsAreNeitherLoggedNorShownByOthers) {
  track::Console console({}, output());
  console.open_log(log_path());
  console.progress(at_step(1));
  EXPECT_NE(take_out(), "");
  EXPECT_EQ(base::read_file(log_path()), "");
  track::Console silent({.rank = 1, .speaks = false}, output());
  EXPECT_FALSE(silent.is_line_due("train"));
  silent.progress(at_step(1));
  EXPECT_EQ(take_out(), "");
}

TEST_F(ConsoleTest, TheLogGetsMessagesAndLinesWithTimeAndLevel) {
  columns_ = 60;
  track::Console console({}, output());
  console.open_log(log_path());
  console.info("begin");
  console.warn("hot");
  console.error("broken");
  console.progress(at_step(1));
  console.progress_line(at_step(2));
  EXPECT_EQ(base::read_file(log_path()),
            logged("INFO - begin") + logged("WARNING - hot") +
                logged("ERROR - broken") +
                logged("INFO - " + track::line_text(at_step(2))));
}

TEST_F(ConsoleTest, TheLogGetsWhatWasSaidBeforeIt) {
  track::Console console({}, output());
  console.info("early");
  console.open_log(log_path());
  console.info("late");
  EXPECT_EQ(base::read_file(log_path()),
            logged("INFO - early") + logged("INFO - late"));
}

TEST_F(ConsoleTest, WhatWaitsForALogIsLimited) {
  track::Console console({}, output());
  for (int i = 0; i < 100; ++i) console.info(std::string(1024, 'x'));
  console.open_log(log_path());
  const auto size = std::filesystem::file_size(log_path());
  EXPECT_LE(size, 64u * 1024);
  EXPECT_GT(size, 60u * 1024);
}

TEST_F(ConsoleTest, AListenerHearsMessagesAndLinesUntilItIsTakenAway) {
  track::Console console({}, output());
  std::string heard;
  console.info("before");
  console.listen([&](track::Level level, const std::string& lines) {
    heard += (level == track::Level::kError ? "E " : "- ") + lines;
  });
  console.info("two\nlines");
  console.error("broken");
  console.progress(at_step(1));
  console.progress_line(at_step(2));
  console.log_error("the end");
  console.listen({});
  console.info("after");
  EXPECT_EQ(heard, "- two\nlines\nE error: broken\n- " +
                       track::line_text(at_step(2)) + "\nE error: the end\n");
}

TEST_F(ConsoleTest, ALogThatCannotBeOpenedIsAnError) {
  track::Console console({}, output());
  EXPECT_THROW(console.open_log(folder_.path() / "no" / "log"), IoError);
  console.info("still here");
  EXPECT_EQ(out_, "still here\n");
}

TEST_F(ConsoleTest, AFullDiskIsSaidOnceAndStopsNothing) {
  track::Console console({}, output());
  console.open_log("/dev/full");
  console.info("one");
  console.info("two");
  EXPECT_EQ(out_, "one\ntwo\n");
  EXPECT_NE(err_.find("log file /dev/full cannot be written: No space left"),
            std::string::npos);
  EXPECT_EQ(base::split(err_, '\n').size(), 2u);
}

TEST_F(ConsoleTest, AVanishedLogIsSaidOnceAboveTheBar) {
  columns_ = 60;
  track::Console console({}, output());
  console.open_log(log_path());
  console.progress(at_step(1));
  std::filesystem::remove(log_path());
  take_out();
  console.progress_line(at_step(1));
  console.progress_line(at_step(2));
  EXPECT_EQ(take_out(), kErase + drawn(1));
  EXPECT_NE(err_.find("it was removed"), std::string::npos);
  EXPECT_EQ(base::split(err_, '\n').size(), 2u);
}

TEST_F(ConsoleTest, LinesOfThreadsStayWhole) {
  constexpr int kThreads = 4;
  constexpr int kLines = 200;
  columns_ = 60;
  {
    track::Console console({.progress = track::ProgressDisplay::kLines},
                           output());
    console.open_log(log_path());
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < kLines; ++k) console.info("abc");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::string expected;
  std::string expected_log;
  for (int i = 0; i < kThreads * kLines; ++i) {
    expected += "abc\n";
    expected_log += logged("INFO - abc");
  }
  EXPECT_EQ(out_, expected);
  EXPECT_EQ(base::read_file(log_path()), expected_log);
}

}  // namespace
}  // namespace lockstep

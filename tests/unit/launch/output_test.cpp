#include "lockstep/launch/output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::TempDir;

struct Feed {
  base::FileDescriptor read_end;
  base::FileDescriptor write_end;
};

Feed make_feed() {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

TEST(OutputStream, WritesLogAndFilteredLines) {
  const TempDir folder;
  Feed feed = make_feed();
  launch::WorkerLogFile filtered(folder.path() / "filtered", nullptr);
  launch::OutputTarget target;
  target.log =
      std::make_unique<launch::WorkerLogFile>(folder.path() / "log", nullptr);
  target.filters = {"loss"};
  target.filtered = &filtered;
  target.filtered_prefix = "[default1]:";
  launch::OutputStream stream(std::move(feed.read_end), std::move(target));
  base::write_all(feed.write_end.get(), "loss 1\nother\nlast loss");
  EXPECT_TRUE(stream.pump());
  EXPECT_FALSE(stream.pump());
  EXPECT_TRUE(stream.is_open());
  feed.write_end.reset();
  EXPECT_FALSE(stream.pump());
  EXPECT_FALSE(stream.is_open());
  EXPECT_EQ(base::read_file(folder.path() / "log"), "loss 1\nother\nlast loss");
  EXPECT_EQ(base::read_file(folder.path() / "filtered"),
            "[default1]:loss 1\n[default1]:last loss");
}

// What a stream shows of a worker that becomes rank 3, before and after.
std::string shown_around_change(launch::OutputTarget target,
                                const std::string& before,
                                const std::string& after) {
  Feed worker = make_feed();
  Feed shown = make_feed();
  launch::ConsoleStream console(shown.write_end.get());
  target.console = &console;
  launch::OutputStream stream(std::move(worker.read_end), std::move(target));
  base::write_all(worker.write_end.get(), before);
  stream.pump();
  stream.set_rank(3, "[rank 3] ");
  base::write_all(worker.write_end.get(), after);
  stream.pump();
  shown.write_end.reset();
  std::array<char, 4096> text{};
  const ssize_t size = read(shown.read_end.get(), text.data(), text.size());
  return size < 0 ? "" : std::string(text.data(), static_cast<size_t>(size));
}

TEST(OutputStream, AWorkerThatBecomesAnotherRankGetsItsPrefix) {
  const TempDir folder;
  launch::WorkerLogFile filtered(folder.path() / "filtered", nullptr);
  launch::OutputTarget target;
  target.prefix = "[rank 1] ";
  target.filters = {"loss"};
  target.filtered = &filtered;
  target.filtered_prefix = "[rank 1] ";
  EXPECT_EQ(shown_around_change(std::move(target), "loss 1\n", "loss 2\n"),
            "[rank 1] loss 1\n[rank 3] loss 2\n");
  EXPECT_EQ(base::read_file(folder.path() / "filtered"),
            "[rank 1] loss 1\n[rank 3] loss 2\n");
}

TEST(OutputStream, LinesWithoutAPrefixStayWithoutOneButThoseOfNccl) {
  const TempDir folder;
  launch::WorkerLogFile filtered(folder.path() / "filtered", nullptr);
  launch::OutputTarget target;
  target.nccl_prefix = launch::nccl_prefix(1);
  target.filters = {"loss"};
  target.filtered = &filtered;
  const std::string nccl = "box:1:1 [0] NCCL WARN loss\n";
  EXPECT_EQ(
      shown_around_change(std::move(target), nccl + "loss\n", nccl + "loss\n"),
      "[rank1]:" + nccl + "loss\n[rank3]:" + nccl + "loss\n");
  EXPECT_EQ(base::read_file(folder.path() / "filtered"),
            nccl + "loss\n" + nccl + "loss\n");
}

TEST(OutputStream, ErrorsAreThoseOfTheRankThatAWorkerHasBecome) {
  Feed shown = make_feed();
  launch::ConsoleStream console(shown.write_end.get());
  launch::ErrorLines errors(console, 4);
  launch::OutputTarget target;
  target.errors = &errors;
  target.rank = 1;
  // Held: it may be an error of several ranks.
  EXPECT_EQ(shown_around_change(std::move(target), "[rank3]: of another\n",
                                "[rank3]: IoError: disk\n"),
            "[rank3]: of another\n");
  EXPECT_TRUE(errors.next_release_ns());
}

TEST(OutputStream, KeepsTheLastLinesWithoutTheirEnds) {
  Feed feed = make_feed();
  launch::OutputStream stream(std::move(feed.read_end), {});
  for (int i = 0; i < 30; ++i) {
    base::write_all(feed.write_end.get(), "line " + std::to_string(i) + "\n\n");
  }
  stream.pump();
  ASSERT_EQ(stream.tail().size(), launch::OutputStream::kTailLines);
  EXPECT_EQ(stream.tail().front(), "line 10");
  EXPECT_EQ(stream.tail().back(), "line 29");
}

TEST(OutputStream, KeepsOfAProgressBarOnlyTheLastFrame) {
  Feed feed = make_feed();
  launch::OutputStream stream(std::move(feed.read_end), {});
  const auto receive = [&](const std::string& text) {
    base::write_all(feed.write_end.get(), text);
    stream.pump();
    return std::vector<std::string>(stream.tail().begin(), stream.tail().end());
  };
  using Lines = std::vector<std::string>;
  receive("begin\n");
  for (int i = 0; i < 50; ++i) receive("\r" + std::to_string(i) + "%\r");
  EXPECT_EQ(receive(""), (Lines{"begin", "49%"}));
  EXPECT_EQ(receive("error\n"), (Lines{"begin", "error"}));
  // A pair that two reads cut is the end of a line, not of a frame.
  receive("line\r");
  receive("\n");
  EXPECT_EQ(receive("end\n"), (Lines{"begin", "error", "line", "end"}));
}

TEST(LastLines, AreWhatATerminalShows) {
  const TempDir folder;
  const auto path = folder.write("log", "\r1%\r2%\r\nend\r\n");
  EXPECT_EQ(launch::last_lines(path, 5),
            (std::vector<std::string>{"2%", "end"}));
}

TEST(LastLines, ReadsTheEndOfAFile) {
  const TempDir folder;
  const auto path = folder.write("log", "a\nb\n\nc\n");
  EXPECT_EQ(launch::last_lines(path, 2), (std::vector<std::string>{"b", "c"}));
  EXPECT_TRUE(launch::last_lines(folder.path() / "none", 2).empty());
}

}  // namespace
}  // namespace lockstep

#include "lockstep/launch/line_splitter.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

using Lines = std::vector<std::string>;

Lines split_parts(const Lines& parts) {
  launch::LineSplitter splitter;
  Lines lines;
  const auto sink = [&](std::string_view line) { lines.emplace_back(line); };
  for (const std::string& part : parts) splitter.push(part, sink);
  splitter.finish(sink);
  return lines;
}

TEST(LineSplitter, HoldsALineUntilItIsComplete) {
  launch::LineSplitter splitter;
  Lines lines;
  const auto sink = [&](std::string_view line) { lines.emplace_back(line); };
  splitter.push("ab", sink);
  EXPECT_TRUE(lines.empty());
  splitter.push("c\nd", sink);
  EXPECT_EQ(lines, Lines{"abc\n"});
  splitter.finish(sink);
  EXPECT_EQ(lines, (Lines{"abc\n", "d"}));
}

TEST(LineSplitter, CarriageReturnEndsALineOfAProgressBar) {
  EXPECT_EQ(split_parts({"10%\r20%\r"}), (Lines{"10%\r", "20%\r"}));
  EXPECT_EQ(split_parts({"a\r\nb\n"}), (Lines{"a\r\n", "b\n"}));
}

TEST(LineSplitter, EmptyLinesStay) {
  EXPECT_EQ(split_parts({"\n\na\n"}), (Lines{"\n", "\n", "a\n"}));
}

TEST(LineSplitter, AnEndlessLineIsCut) {
  const std::string half(launch::LineSplitter::kMaxBytes / 2, 'x');
  const Lines lines = split_parts({half, half, "tail"});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].size(), launch::LineSplitter::kMaxBytes);
  EXPECT_EQ(lines[1], "tail");
}

}  // namespace
}  // namespace lockstep

#include "lockstep/base/strings.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Strings, SplitKeepsEmptyParts) {
  EXPECT_EQ(base::split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(base::split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(base::join(base::split("1:2:3", ':'), "-"), "1-2-3");
}

TEST(Strings, TrimAndReplace) {
  EXPECT_EQ(base::trim("  a b\n"), "a b");
  EXPECT_EQ(base::trim(" \n"), "");
  EXPECT_EQ(base::replace_all("aXbX", "X", "XX"), "aXXbXX");
}

TEST(Strings, NumbersMustBeTheWholeText) {
  EXPECT_EQ(base::parse_integer("-12"), -12);
  EXPECT_FALSE(base::parse_integer("12x"));
  EXPECT_FALSE(base::parse_integer(""));
  EXPECT_EQ(base::parse_number("2.5"), 2.5);
  EXPECT_FALSE(base::parse_number("2.5s"));
}

TEST(Strings, NearestFindsTypingMistakesOnly) {
  const std::vector<std::string> words = {"nproc-per-node", "log-dir"};
  EXPECT_EQ(base::nearest("nprc-per-node", words), "nproc-per-node");
  EXPECT_EQ(base::nearest("logdir", words), "log-dir");
  EXPECT_FALSE(base::nearest("batch-size", words));
}

// The edit distance takes the product of both lengths in steps: of words this
// long it would take hours.
TEST(Strings, NearestLooksAtNoEndlessWords) {
  const std::vector<std::string> words = {std::string(9'000'000, 'a'), "lr"};
  EXPECT_FALSE(base::nearest(std::string(9'000'000, 'b'), words));
  EXPECT_EQ(base::nearest("lrr", words), "lr");
}

TEST(Strings, AmountsInWords) {
  EXPECT_EQ(base::duration_text(0.85), "850 ms");
  EXPECT_EQ(base::duration_text(12.34), "12.3 s");
  EXPECT_EQ(base::duration_text(250), "4 min 10 s");
  EXPECT_EQ(base::bytes_text(512), "512 B");
  EXPECT_EQ(base::bytes_text(25 * 1024 * 1024), "25.0 MiB");
  EXPECT_EQ(base::list_of(std::vector<int>{0, 2, 5}), "0, 2, 5");
}

TEST(Names, OfEqualOnesTheLaterGetANumber) {
  std::vector<std::string> names = {"a", "b", "a", "a_2", "a"};
  base::number_equal_names(names);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "a_2", "a_2_2", "a_3"}));
}

}  // namespace
}  // namespace lockstep

// Many ranks, much output.
#include <gtest/gtest.h>

#include <map>

#include "faults/launcher.h"
#include "lockstep/base/strings.h"

namespace lockstep::testing {
namespace {

TEST(Load, SixteenRanksLoseNoLineAndKeepTheirOrder) {
  constexpr int kLines = 20'000;
  const auto result = run(
      python_job({"--nproc=16"},
                 "import os\nfor i in range(20000): print(os.environ['RANK'], "
                 "i)\n"));
  EXPECT_EQ(result.exit_code, 0);
  std::map<std::string, int> next;
  for (const std::string& line : base::split(result.out, '\n')) {
    if (line.empty()) continue;
    const auto words = base::split(line, ' ');
    ASSERT_EQ(words.size(), 2u) << line;
    ASSERT_EQ(base::parse_integer(words[1]), next[words[0]]) << line;
    ++next[words[0]];
  }
  EXPECT_EQ(next.size(), 16u);
  for (const auto& [rank, number] : next) EXPECT_EQ(number, kLines) << rank;
}

TEST(Load, ASlowReaderOfTheConsoleLosesNothing) {
  const std::string lockstep = LOCKSTEP_PROGRAM;
  const auto result = run({"sh", "-c",
                           lockstep + " run --nproc=4 seq 1 50000 | "
                                      "(sleep 1; wc -l)"});
  EXPECT_EQ(base::parse_integer(base::trim(result.out)), 200'000);
}

}  // namespace
}  // namespace lockstep::testing

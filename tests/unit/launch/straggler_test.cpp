#include "lockstep/launch/straggler.h"

#include <gtest/gtest.h>

#include "support/messages.h"

namespace lockstep {
namespace {

using testing::contains;

struct StepPart {
  double data = 0.01;
  double compute = 0.05;
};

// A training in which every rank waits for the slowest one.
class PacedJob {
 public:
  explicit PacedJob(size_t num_ranks) : parts(num_ranks) {}

  std::vector<StepPart> parts;  // seconds per step, by rank

  std::vector<std::string> train(double seconds) {
    std::vector<std::string> lines;
    for (const double end = now_ + seconds; now_ < end;) {
      ++step_;
      double longest = 0;
      for (const StepPart& part : parts) {
        longest = std::max(longest, part.data + part.compute);
      }
      now_ += longest + exchange;
      std::vector<launch::RankPace> ranks;
      for (size_t rank = 0; rank < parts.size(); ++rank) {
        const StepPart& part = parts[rank];
        // No two steps take the same time.
        const double noise = 1e-6 * static_cast<double>(step_ % 7);
        ranks.push_back({.rank = static_cast<int>(rank),
                         .num_steps = step_,
                         .times = {.num_steps = 1,
                                   .data = part.data + noise,
                                   .compute = part.compute,
                                   .exchange = exchange + longest - part.data -
                                               part.compute,
                                   .other = 0}});
      }
      for (auto& line : watch_.look(ranks, static_cast<int64_t>(1e9 * now_)))
        lines.push_back(std::move(line));
    }
    return lines;
  }

  double exchange = 0.005;

 private:
  double now_ = 0;  // seconds
  int64_t step_ = 0;
  launch::StragglerWatch watch_;
};

TEST(Straggler, EqualRanksAreNotNamed) {
  PacedJob job(4);
  EXPECT_TRUE(job.train(1000).empty());
}

TEST(Straggler, SlowLoadingIsNamedAfterHalfAMinuteAndOnce) {
  PacedJob job(4);
  job.parts[2].data = 0.08;
  EXPECT_TRUE(job.train(30).empty());
  const auto lines = job.train(1000);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(contains(lines[0],
                       "rank 2 slows the job by 108 %: loading data "
                       "takes it 80 ms a step, the others 10 ms"))
      << lines[0];
  EXPECT_TRUE(contains(lines[0], "--workers"));
}

TEST(Straggler, SlowComputingIsNamedAlsoOfTwoRanks) {
  PacedJob job(2);
  job.parts[0].compute = 0.1;
  const auto lines = job.train(100);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(contains(lines[0],
                       "rank 0 slows the job by 77 %: computing "
                       "takes it 100 ms a step, the others 50 ms"))
      << lines[0];
}

TEST(Straggler, TheEndIsSaidOnce) {
  PacedJob job(3);
  job.parts[1].compute = 0.1;
  EXPECT_EQ(job.train(100).size(), 1u);
  job.parts[1].compute = 0.05;
  const auto lines = job.train(100);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "rank 1 no longer slows the job");
}

TEST(Straggler, LongStepsAreCounted) {
  PacedJob job(3);
  for (StepPart& part : job.parts) part.compute = 4;
  job.parts[1].compute = 6;
  EXPECT_TRUE(job.train(20 * 6).empty());
  EXPECT_EQ(job.train(12).size(), 1u);
}

TEST(Straggler, AFewSlowStepsAreNotPersistent) {
  PacedJob job(3);
  for (int i = 0; i < 20; ++i) {
    job.parts[1].compute = 0.2;
    EXPECT_TRUE(job.train(25).empty());
    job.parts[1].compute = 0.05;
    EXPECT_TRUE(job.train(5).empty());
  }
}

TEST(Straggler, ASlowRankThatNobodyWaitsForIsNotNamed) {
  PacedJob job(3);
  job.exchange = 0.2;
  job.parts[1].data = 0.03;
  // Less than a fifth of the step.
  EXPECT_TRUE(job.train(100).empty());
}

TEST(Straggler, DifferencesBelowAFewMillisecondsAreNotNamed) {
  PacedJob job(3);
  for (StepPart& part : job.parts) part = {.data = 1e-4, .compute = 1e-3};
  job.exchange = 1e-4;
  job.parts[1].compute = 4e-3;
  EXPECT_TRUE(job.train(100).empty());
}

}  // namespace
}  // namespace lockstep

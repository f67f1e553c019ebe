#include "lockstep/runs/rank_table.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using runs::RankHealth;
using runs::RankRow;

RankRow rank(int number, int64_t collectives) {
  RankRow row{.process_state = 'S'};
  row.page.rank = {.pid = 100 + number,
                   .rank = number,
                   .phase = base::Phase::kBackward,
                   .collective = base::Collective::kAllReduce,
                   .step = 7,
                   .collectives_started = collectives,
                   .collectives_finished = collectives};
  return row;
}

RankRow timed(int number, double compute) {
  RankRow row = rank(number, 5);
  row.page.training = base::TrainingStatus{
      .times = {.num_steps = 10, .data = 0.1, .compute = compute}};
  return row;
}

std::vector<RankHealth> judged(std::vector<RankRow> rows) {
  runs::judge_ranks(rows);
  std::vector<RankHealth> result;
  for (const RankRow& row : rows) result.push_back(row.health);
  return result;
}

using Healths = std::vector<RankHealth>;

TEST(RankTable, RanksThatKeepUpAreWell) {
  EXPECT_EQ(judged({rank(0, 5), rank(1, 6)}), Healths(2, RankHealth::kOk));
  EXPECT_TRUE(judged({}).empty());
}

TEST(RankTable, AStoppedRankIsNamedAndTheOthersWait) {
  RankRow waiting = rank(0, 6);
  waiting.page.rank.collectives_finished = 5;
  waiting.page.rank.collective_seconds = 8;
  RankRow stopped = rank(1, 6);
  stopped.process_state = 'T';
  std::vector<RankRow> rows = {waiting, stopped};
  runs::judge_ranks(rows);
  EXPECT_EQ(rows[0].health, RankHealth::kWaiting);
  EXPECT_EQ(rows[0].note, "waits in all_reduce for 8.0 s");
  EXPECT_EQ(rows[1].health, RankHealth::kStopped);
  EXPECT_EQ(rows[1].note, "stopped by a signal; kill -CONT 101 continues it");
}

TEST(RankTable, TheRankThatOthersWaitForIsStuck) {
  RankRow waiting = rank(0, 6);
  waiting.page.rank.collectives_finished = 5;
  waiting.page.rank.collective_seconds = 9;
  RankRow stuck = rank(1, 5);
  stuck.page.rank.silent_seconds = 9;
  EXPECT_EQ(judged({waiting, stuck}),
            (Healths{RankHealth::kWaiting, RankHealth::kStuck}));
  stuck.page.rank.silent_seconds = 1;  // It is on its way.
  EXPECT_EQ(judged({waiting, stuck}),
            (Healths{RankHealth::kWaiting, RankHealth::kOk}));
}

TEST(RankTable, AProcessThatEndedIsGoneUnlessItWasDone) {
  RankRow gone = rank(1, 5);
  gone.process_state = '-';
  RankRow done = gone;
  done.page.rank.phase = base::Phase::kDone;
  EXPECT_EQ(judged({rank(0, 5), gone, done}),
            (Healths{RankHealth::kOk, RankHealth::kGone, RankHealth::kOk}));
}

TEST(RankTable, TheSlowRankIsTheOneThatComputesLonger) {
  EXPECT_EQ(judged({timed(0, 1), timed(1, 1.1), timed(2, 2)}),
            (Healths{RankHealth::kOk, RankHealth::kOk, RankHealth::kSlow}));
}

TEST(RankTable, AProcessWithoutStatusPagesHasNoRanks) {
  EXPECT_TRUE(runs::read_ranks({.pid = 0}).empty());
  EXPECT_TRUE(runs::read_ranks({.pid = 1}).empty());
  EXPECT_TRUE(runs::read_ranks({.pid = -5}).empty());
}

}  // namespace
}  // namespace lockstep

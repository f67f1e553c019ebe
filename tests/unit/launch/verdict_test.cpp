#include "lockstep/launch/verdict.h"

#include <gtest/gtest.h>

#include <csignal>

#include "support/messages.h"

namespace lockstep {
namespace {

using testing::contains;

launch::RankSnapshot rank_at(int rank, int64_t started, int64_t finished) {
  launch::RankSnapshot snapshot;
  snapshot.rank = rank;
  snapshot.pid = 100 + rank;
  snapshot.is_alive = true;
  snapshot.state = 'S';
  base::RankStatus status;
  status.collective = base::Collective::kAllReduce;
  status.collectives_started = started;
  status.collectives_finished = finished;
  status.collective_seconds = 31;
  status.silent_seconds = 32;
  status.phase = base::Phase::kForward;
  status.step = 11;
  snapshot.status = status;
  return snapshot;
}

launch::RankSnapshot foreign_rank(int rank, char state) {
  launch::RankSnapshot snapshot;
  snapshot.rank = rank;
  snapshot.pid = 100 + rank;
  snapshot.is_alive = true;
  snapshot.state = state;
  snapshot.quiet_seconds = 45;
  return snapshot;
}

launch::Failure timeout_failure() {
  launch::Failure failure;
  failure.pid = 100;
  failure.exit_code = 6;
  return failure;
}

TEST(Verdict, NamesTheRankBehindAndThoseWaiting) {
  const std::vector ranks = {rank_at(0, 12, 11), rank_at(1, 11, 11),
                             rank_at(2, 12, 11)};
  const std::string text =
      launch::timeout_verdict(ranks, timeout_failure(), 30);
  EXPECT_TRUE(contains(
      text, "waiting: rank 0 (pid 100) in all_reduce #12 for 31.0 s, step 11"));
  EXPECT_TRUE(contains(text, "waiting: rank 2"));
  EXPECT_TRUE(contains(text,
                       "stalled: rank 1 (pid 101); last collective: all_reduce "
                       "#11, phase: forward, step 11, silent for 32.0 s"))
      << text;
  EXPECT_FALSE(contains(text, "waiting: rank 1"));
}

TEST(Verdict, SaysHowToChangeTheLimit) {
  const std::string text = launch::timeout_verdict(
      std::vector{rank_at(0, 1, 0)}, timeout_failure(), 30);
  EXPECT_TRUE(contains(text, "The limit is 30.0 s"));
  for (const char* name :
       {"--timeout SECONDS", "NCCL_TIMEOUT", "TORCH_DISTRIBUTED_TIMEOUT"}) {
    EXPECT_TRUE(contains(text, name));
  }
}

TEST(Verdict, AStoppedRankIsNamedWithTheWayOut) {
  std::vector ranks = {rank_at(0, 12, 11), rank_at(1, 12, 11)};
  ranks[1].state = 'T';
  EXPECT_TRUE(contains(
      launch::timeout_verdict(ranks, timeout_failure(), 30),
      "stalled: rank 1 (pid 101) is stopped (SIGSTOP); resume it with kill "
      "-CONT 101"));
}

TEST(Verdict, ARankThatNeverAttachedStalls) {
  const std::vector ranks = {rank_at(0, 1, 0), foreign_rank(1, 'S')};
  EXPECT_TRUE(contains(launch::timeout_verdict(ranks, timeout_failure(), 30),
                       "stalled: rank 1 (pid 101); process is sleeping"));
}

TEST(Verdict, EqualRanksPointToTheNetwork) {
  const std::vector ranks = {rank_at(0, 5, 4), rank_at(1, 5, 4)};
  EXPECT_TRUE(contains(launch::timeout_verdict(ranks, timeout_failure(), 30),
                       "no rank is behind"));
}

TEST(Verdict, DifferentCollectivesAreSaid) {
  std::vector ranks = {rank_at(0, 5, 4), rank_at(1, 5, 4)};
  ranks[1].status->collective = base::Collective::kBroadcast;
  EXPECT_TRUE(contains(launch::timeout_verdict(ranks, timeout_failure(), 30),
                       "the ranks called different collectives"));
}

TEST(Verdict, TheExitCodeOfAForeignProgramIsItsOwn) {
  const std::vector ranks = {foreign_rank(0, 'S')};
  launch::Failure failure;
  failure.exit_code = 6;
  EXPECT_FALSE(launch::is_timeout(failure, ranks, 30));
  EXPECT_TRUE(launch::is_timeout(failure, std::vector{rank_at(0, 5, 4)}, 30));
}

TEST(Verdict, ForeignProgramsAreToldByStateAndSilence) {
  std::vector ranks = {foreign_rank(0, 'S'), foreign_rank(1, 'T'),
                       foreign_rank(2, 'R')};
  ranks[0].is_alive = false;
  ranks[0].exit_code = 1;
  const std::string text =
      launch::timeout_verdict(ranks, timeout_failure(), 30);
  EXPECT_TRUE(contains(text, "rank 0 (pid 100) gave up waiting"));
  EXPECT_TRUE(contains(text, "kill -CONT 101"));
  EXPECT_TRUE(contains(text,
                       "alive: rank 2 (pid 102); process is running, no "
                       "output for 45.0 s"));
}

TEST(Verdict, EarlyExitsAreMentioned) {
  std::vector ranks = {foreign_rank(0, 'S'), foreign_rank(1, 'S')};
  EXPECT_EQ(launch::early_exits(ranks), "");
  ranks[1].is_alive = false;
  EXPECT_TRUE(contains(launch::early_exits(ranks),
                       "rank 1 (pid 101) had already exited with 0"));
}

TEST(Timeout, TheLimitOfTheWorkerBeatsTheOneOfTheEnvironment) {
  launch::RankSnapshot rank = rank_at(0, 1, 0);
  EXPECT_EQ(launch::timeout_of(rank, 30), 30);
  rank.status->timeout_seconds = 3600;
  EXPECT_EQ(launch::timeout_of(rank, 30), 3600);
  EXPECT_TRUE(contains(
      launch::timeout_verdict(std::vector{rank}, timeout_failure(), 30),
      "The limit is 60 min 0 s;"));
}

TEST(Timeout, IsKnownByCodeMessageOrPatience) {
  const std::vector ranks = {rank_at(0, 5, 4)};
  EXPECT_TRUE(launch::is_timeout(timeout_failure(), ranks, 600));
  launch::Failure failure;
  failure.exit_code = 1;
  EXPECT_FALSE(launch::is_timeout(failure, ranks, 30));
  failure.error =
      base::ErrorReport{.message = "TimeoutError: x", .callstack = ""};
  EXPECT_TRUE(launch::is_timeout(failure, ranks, 30));
  failure.error->message = "ValueError: x";
  EXPECT_FALSE(launch::is_timeout(failure, ranks, 30));
  failure.error.reset();
  failure.last_lines = {"warning: the default timeout applies"};
  EXPECT_FALSE(launch::is_timeout(failure, ranks, 30));
  failure.last_lines = {"RuntimeError: Timed out waiting 1000ms"};
  EXPECT_TRUE(launch::is_timeout(failure, ranks, 30));
}

TEST(Timeout, AnAbortCountsOnlyAtTheEndOfTheLimit) {
  launch::Failure failure;
  failure.exit_code = -SIGABRT;
  const std::vector ranks = {rank_at(0, 5, 4)};
  EXPECT_TRUE(launch::is_timeout(failure, ranks, 30));
  EXPECT_FALSE(launch::is_timeout(failure, ranks, 600));
}

launch::Failure peer_failure() {
  launch::Failure failure;
  failure.pid = 100;
  failure.exit_code = 5;
  failure.error =
      base::ErrorReport{.message = "PeerError: gone", .callstack = ""};
  return failure;
}

launch::RankSnapshot gone_rank(int rank, int64_t collectives, double ended_at) {
  launch::RankSnapshot snapshot = rank_at(rank, collectives, collectives);
  snapshot.is_alive = false;
  snapshot.ended_at = ended_at;
  return snapshot;
}

TEST(Verdict, ARankThatLeftWith0IsTheCauseOfLostPeers) {
  const std::vector ranks = {rank_at(0, 12, 11), gone_rank(1, 11, 20),
                             gone_rank(2, 11, 10)};
  const std::vector failures = {peer_failure()};
  const auto leaver = launch::find_leaver(ranks, failures, 30);
  ASSERT_TRUE(leaver);
  EXPECT_EQ(leaver->rank, 2);
  EXPECT_EQ(leaver->exit_code, 0);
  EXPECT_TRUE(contains(leaver->error->message,
                       "rank 2 exited with 0 while other ranks still needed it "
                       "(phase forward, step 11, last collective: all_reduce "
                       "#11)"))
      << leaver->error->message;
  const std::vector all = {peer_failure(), *leaver};
  EXPECT_EQ(launch::find_root_cause(all), 1u);
  EXPECT_EQ(launch::exit_code_for(all), 5);
}

TEST(Verdict, ARankThatLeftIsNotBlamedForOtherErrors) {
  const std::vector ranks = {rank_at(0, 12, 11), gone_rank(1, 11, 20)};
  launch::Failure failure = peer_failure();
  failure.exit_code = 3;
  failure.error->message = "IoError: disk";
  EXPECT_FALSE(launch::find_leaver(ranks, std::vector{failure}, 30));
}

TEST(Verdict, ATimeoutIsTheFaultOfARankThatLeftWithFewerCollectives) {
  const std::vector failures = {timeout_failure()};
  const std::vector behind = {rank_at(0, 12, 11), gone_rank(1, 11, 20)};
  EXPECT_TRUE(launch::find_leaver(behind, failures, 30));
  const std::vector equal = {rank_at(0, 12, 11), gone_rank(1, 12, 20)};
  EXPECT_FALSE(launch::find_leaver(equal, failures, 30));
}

}  // namespace
}  // namespace lockstep

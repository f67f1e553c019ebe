// The rounds of jobs with --nnodes MIN:MAX.
#include <csignal>

#include "lockstep/error.h"
#include "support/messages.h"
#include "unit/nodes/members.h"

namespace lockstep {
namespace {

using nodes::End;
using nodes::MemberId;
using testing::expect_in;

class ElasticRounds : public testing::Members {
 protected:
  ElasticRounds()
      : Members({.num_nodes = 4,
                 .min_nodes = 2,
                 .join_seconds = 60,
                 .last_call_seconds = 30,
                 .alive_seconds = 5,
                 .max_missed = 3}) {}

  // Members 10, 11 and 12 are nodes 0, 1 and 2.
  void form_three() {
    join(10, "a");
    join(11, "b");
    join(12, "c");
    pass(31);
    EXPECT_EQ(last<nodes::World>(12).num_nodes, 3);
  }

  // All that are named have ended, and the host lets them start again.
  void start_again(const std::vector<MemberId>& ids) {
    for (const MemberId id : ids) say(id, nodes::Result{});
    last<nodes::Results>(10);
    say(10, nodes::Verdict{.is_restart = true, .is_counted = false});
  }
};

TEST_F(ElasticRounds, StartAtOnceWhenAllAreThere) {
  for (const MemberId id : {10, 11, 12}) join(id, "n");
  EXPECT_TRUE(heard_.empty());
  join(13, "n");
  EXPECT_EQ(last<nodes::World>(13).num_nodes, 4);
}

TEST_F(ElasticRounds, StartWithFewerAfterTheLastCall) {
  join(10, "a");
  pass(20);
  join(11, "b");
  pass(20);
  join(12, "c");
  pass(9);
  EXPECT_TRUE(heard_.empty());
  pass(2);
  const auto world = last<nodes::World>(12);
  EXPECT_EQ(world.num_nodes, 3);
  EXPECT_EQ(world.num_ranks, 6);
  EXPECT_EQ(world.first_rank, 4);
  EXPECT_EQ(world.attempt, 0);
}

TEST_F(ElasticRounds, TheLastCallBeginsAnewWhenTooFewAreLeft) {
  join(10, "a");
  join(11, "b");
  pass(20);
  leave(11);
  pass(20);
  EXPECT_TRUE(heard_.empty());
  join(12, "c");
  pass(15);
  EXPECT_TRUE(heard_[10].empty());
}

TEST_F(ElasticRounds, TooFewAreGivenUp) {
  join(10, "a");
  pass(61);
  EXPECT_EQ(last<nodes::Verdict>(10).exit_code, kTimeoutExitCode);
  expect_in(last<nodes::Verdict>(10).text,
            "for at least 2 nodes, 1 came (a); start the others");
}

TEST_F(ElasticRounds, AtTheEndOfTheJoinTimeFewerAreEnough) {
  join(10, "a");
  pass(50);
  join(11, "b");
  pass(11);
  EXPECT_EQ(last<nodes::World>(11).num_nodes, 2);
}

TEST_F(ElasticRounds, OtherBoundsAreRefused) {
  join(10, "a");
  say(11, nodes::Join{.num_nodes = 4, .min_nodes = 1});
  expect_in(last<nodes::Refusal>(11).reason,
            "its --nnodes is 1:4, that of the host 2:4");
  say(11, nodes::Join{.num_nodes = 4});
  expect_in(last<nodes::Refusal>(11).reason,
            "its --nnodes is 4, that of the host 2:4");
}

TEST_F(ElasticRounds, WithoutALostNodeTheOthersGoOnInTheirOrder) {
  form_three();
  leave(11);
  EXPECT_EQ(last<End>(12).kind, End::Kind::kFailure);
  start_again({10, 12});
  join(10, "a");
  EXPECT_TRUE(std::holds_alternative<nodes::Verdict>(heard_[12].back()));
  join(12, "c");
  EXPECT_EQ(last<nodes::World>(10).node, 0);
  const auto world = last<nodes::World>(12);
  EXPECT_EQ(world.node, 1);
  EXPECT_EQ(world.num_nodes, 2);
  EXPECT_EQ(world.attempt, 1);
  EXPECT_EQ(world.num_restarts, 0);
}

TEST_F(ElasticRounds, OnlyCountedRestartsAreCounted) {
  form_three();
  say(11, nodes::Ending{});
  for (const MemberId id : {10, 11, 12}) say(id, nodes::Result{});
  say(10, nodes::Verdict{.is_restart = true});
  for (const MemberId id : {10, 11, 12}) join(id, "n");
  EXPECT_EQ(last<nodes::World>(11).num_restarts, 1);
  leave(12);
  start_again({10, 11});
  for (const MemberId id : {10, 11}) join(id, "n");
  EXPECT_EQ(last<nodes::World>(11).num_restarts, 1);
  EXPECT_EQ(last<nodes::World>(11).attempt, 2);
}

TEST_F(ElasticRounds, WithTooFewLeftWaitForAnother) {
  form_three();
  leave(11);
  leave(12);
  start_again({10});
  join(10, "a");
  pass(50);
  last<nodes::Results>(10);
  join(13, "d");
  EXPECT_EQ(last<nodes::World>(13).num_nodes, 2);
  EXPECT_EQ(last<nodes::World>(13).attempt, 1);
}

TEST_F(ElasticRounds, WithTooFewLeftDoNotWaitForEver) {
  form_three();
  leave(11);
  leave(12);
  start_again({10});
  join(10, "a");
  pass(61);
  expect_in(last<nodes::Verdict>(10).text, "for at least 2 nodes, 1 came (a)");
}

TEST_F(ElasticRounds, ARestartDoesNotWaitForOneThatIsLostMeanwhile) {
  form_three();
  say(12, nodes::Ending{});
  start_again({10, 11, 12});
  join(10, "a");
  join(12, "c");
  leave(11);
  EXPECT_EQ(last<nodes::World>(12).num_nodes, 2);
}

TEST_F(ElasticRounds, GrowWhenANodeComes) {
  form_three();
  join(13, "d");
  expect_in(last<nodes::Queued>(13).reason, "the job runs on 3 nodes");
  // It is the last one that has a place.
  pass(1);
  for (const MemberId id : {10, 11, 12}) {
    EXPECT_EQ(last<End>(id).kind, End::Kind::kRegroup);
  }
  for (const MemberId id : {10, 11, 12}) say(id, nodes::Result{});
  const auto results = last<nodes::Results>(10);
  ASSERT_EQ(results.newcomers.size(), 1u);
  EXPECT_EQ(results.newcomers[0].host_name, "d");
  EXPECT_EQ(results.newcomers[0].num_processes, 2);
  say(10, nodes::Verdict{.is_restart = true, .is_counted = false});
  for (const MemberId id : {10, 11, 12}) join(id, "n");
  EXPECT_EQ(last<nodes::World>(13).node, 3);
  EXPECT_EQ(last<nodes::World>(13).attempt, 1);
}

TEST_F(ElasticRounds, WaitAMomentForFurtherNewcomers) {
  join(10, "a");
  join(11, "b");
  pass(31);
  join(12, "c");
  pass(1);
  last<nodes::World>(10);
  join(13, "d");
  pass(1);
  EXPECT_EQ(last<End>(10).kind, End::Kind::kRegroup);
  say(10, nodes::Result{});
  say(11, nodes::Result{});
  EXPECT_EQ(last<nodes::Results>(10).newcomers.size(), 2u);
}

TEST_F(ElasticRounds, DoNotGrowForOneThatHasGone) {
  form_three();
  join(13, "d");
  leave(13);
  pass(5);
  last<nodes::World>(10);
}

TEST_F(ElasticRounds, DoNotGrowAtTheEnd) {
  form_three();
  say(11, nodes::Result{});
  join(13, "d");
  pass(5);
  last<nodes::World>(10);
  say(10, nodes::Result{});
  say(12, nodes::Result{});
  say(10, nodes::Verdict{});
  expect_in(last<nodes::Refusal>(13).reason, "ended without this node");
}

TEST_F(ElasticRounds, OneTooManyTakesTheNextPlace) {
  for (const MemberId id : {10, 11, 12, 13}) join(id, "n");
  join(14, "late");
  expect_in(last<nodes::Queued>(14).reason, "the job has its 4 nodes");
  leave(12);
  for (const MemberId id : {10, 11, 13}) say(id, nodes::Result{});
  EXPECT_EQ(last<nodes::Results>(10).newcomers.size(), 1u);
  say(10, nodes::Verdict{.is_restart = true, .is_counted = false});
  for (const MemberId id : {10, 11, 13}) join(id, "n");
  EXPECT_EQ(last<nodes::World>(14).num_nodes, 4);
  EXPECT_EQ(last<nodes::World>(14).node, 3);
  EXPECT_EQ(last<nodes::World>(13).node, 2);
}

TEST_F(ElasticRounds, OneThatLeavesIsNotWaitedFor) {
  form_three();
  say(11, nodes::Ending{.signal = SIGTERM, .is_leaving = true});
  EXPECT_EQ(last<End>(10).kind, End::Kind::kRegroup);
  EXPECT_EQ(last<End>(12).kind, End::Kind::kRegroup);
  last<nodes::World>(11);  // It knows.
  start_again({10, 11, 12});
  EXPECT_TRUE(last<nodes::Verdict>(11).is_restart);
  join(10, "a");
  join(12, "c");
  EXPECT_EQ(last<nodes::World>(12).num_nodes, 2);
  leave(11);
  last<nodes::World>(12);
}

TEST_F(ElasticRounds, TheHostMayLeave) {
  form_three();
  say(10, nodes::Ending{.signal = SIGTERM, .is_leaving = true});
  EXPECT_EQ(last<End>(11).kind, End::Kind::kRegroup);
  for (const MemberId id : {10, 11, 12}) say(id, nodes::Result{});
  EXPECT_TRUE(last<nodes::Results>(10).nodes[0].is_leaving);
  say(10, nodes::Verdict{.is_restart = true, .departed = {0}});
  EXPECT_EQ(last<nodes::Verdict>(12).departed, std::vector<int>{0});
}

TEST_F(ElasticRounds, SeveralMayLeaveAtATime) {
  for (const MemberId id : {10, 11, 12, 13}) join(id, "n");
  say(11, nodes::Ending{.signal = SIGTERM, .is_leaving = true});
  say(12, nodes::Ending{.signal = SIGTERM, .is_leaving = true});
  start_again({10, 11, 12, 13});
  join(10, "n");
  join(13, "n");
  EXPECT_EQ(last<nodes::World>(13).num_nodes, 2);
}

TEST_F(ElasticRounds, TheJobStopsWhenTooFewWouldStay) {
  join(10, "a");
  join(11, "b");
  pass(31);
  say(11, nodes::Ending{.signal = SIGTERM, .is_leaving = true});
  EXPECT_EQ(last<End>(10).kind, End::Kind::kStop);
  EXPECT_EQ(last<End>(10).signal, SIGTERM);
}

TEST_F(ElasticRounds, OneThatLeavesBeforeARestartEndsNothing) {
  form_three();
  say(12, nodes::Ending{});
  start_again({10, 11, 12});
  join(10, "a");
  join(12, "c");
  say(11, nodes::Ending{.signal = SIGTERM, .is_leaving = true});
  EXPECT_EQ(last<nodes::World>(12).num_nodes, 2);
}

TEST_F(ElasticRounds, ALossEndsTheWaitForASave) {
  form_three();
  join(13, "d");
  pass(1);
  EXPECT_EQ(last<End>(12).kind, End::Kind::kRegroup);
  leave(11);
  EXPECT_EQ(last<End>(12).kind, End::Kind::kFailure);
}

TEST_F(ElasticRounds, OneThatMayLiveIsCutOff) {
  form_three();
  leave(11, nodes::Fate::kUnknown);
  EXPECT_EQ(last<End>(12).kind, End::Kind::kCut);
  start_again({10, 12});
  // Its launcher said goodbye.
  join(10, "a");
  join(12, "c");
  say(12, nodes::Abandon{});
  say(10, nodes::Result{});
  const auto results = last<nodes::Results>(10);
  EXPECT_TRUE(results.nodes[1].may_live);
  expect_in(results.nodes[1].loss, "hears nothing from the host");
}

// Those that fell silent may have found each other.
TEST_F(ElasticRounds, TheSmallerPartDoesNotStartAgain) {
  form_three();
  say(12, nodes::Ending{});
  start_again({10, 11, 12});
  leave(11, nodes::Fate::kUnknown);
  leave(12, nodes::Fate::kUnknown);
  join(10, "a");
  const auto end = last<nodes::Verdict>(10);
  EXPECT_EQ(end.exit_code, kPeerExitCode);
  expect_in(end.text, "most nodes of the last start have fallen silent");
  EXPECT_TRUE(rounds_.is_over());
}

TEST_F(ElasticRounds, ThoseThatFallSilentAfterTheirResultCount) {
  form_three();
  for (const MemberId id : {11, 12}) {
    say(id, nodes::Result{});
    leave(id, nodes::Fate::kUnknown);
  }
  say(10, nodes::Result{});
  say(10, nodes::Verdict{.is_restart = true, .is_counted = false});
  join(13, "spare");
  join(10, "a");
  EXPECT_EQ(last<nodes::Verdict>(10).exit_code, kPeerExitCode);
}

TEST_F(ElasticRounds, TheLargerPartStartsAgain) {
  form_three();
  say(12, nodes::Ending{});
  start_again({10, 11, 12});
  leave(12, nodes::Fate::kUnknown);
  join(10, "a");
  join(11, "b");
  EXPECT_EQ(last<nodes::World>(11).num_nodes, 2);
}

TEST_F(ElasticRounds, AllLearnWhoMayHostNext) {
  form_three();
  EXPECT_EQ(last<nodes::World>(12).addresses,
            (std::vector<std::string>{"at a", "at b", "at c"}));
}

TEST_F(ElasticRounds, CtrlCStopsAll) {
  form_three();
  say(11, nodes::Ending{.signal = SIGINT});
  EXPECT_EQ(last<End>(12).kind, End::Kind::kStop);
}

}  // namespace
}  // namespace lockstep

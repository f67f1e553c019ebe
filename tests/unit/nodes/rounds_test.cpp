#include "lockstep/nodes/rounds.h"

#include <csignal>

#include "lockstep/error.h"
#include "support/messages.h"
#include "unit/nodes/members.h"

namespace lockstep {
namespace {

using nodes::MemberId;
using testing::expect_in;
using testing::kSecond;

class RoundsTest : public testing::Members {
 protected:
  RoundsTest()
      : Members({.num_nodes = 3,
                 .join_seconds = 60,
                 .alive_seconds = 5,
                 .max_missed = 3}) {}

  void form() {
    join(10, "c");
    join(11, "b");
    join(12, "a");
  }
};

TEST_F(RoundsTest, TheWorldFormsWhenAllAreThere) {
  join(11, "b");
  join(12, "a");
  EXPECT_TRUE(heard_.empty());
  join(10, "c");
  // The host is node 0; the others have the order of their names.
  EXPECT_EQ(last<nodes::World>(10).node, 0);
  EXPECT_EQ(last<nodes::World>(12).node, 1);
  EXPECT_EQ(last<nodes::World>(11).node, 2);
  const auto world = last<nodes::World>(11);
  EXPECT_EQ(world.num_nodes, 3);
  EXPECT_EQ(world.first_rank, 4);
  EXPECT_EQ(world.num_ranks, 6);
  EXPECT_EQ(world.master_addr, "10.0.0.1");
}

TEST_F(RoundsTest, GivenNumbersAreKept) {
  join(11, "a", 2);
  join(10, "z", 0);
  join(12, "b", 1);
  EXPECT_EQ(last<nodes::World>(11).node, 2);
  EXPECT_EQ(last<nodes::World>(12).node, 1);
}

TEST_F(RoundsTest, WhatDoesNotFitIsRefused) {
  join(10, "a", 0);
  join(11, "b", 1);
  join(12, "c", 1);
  expect_in(last<nodes::Refusal>(12).reason, "--node-rank 1 is taken by b");
  EXPECT_EQ(rounds_.take_dismissed(), (std::vector<MemberId>{12}));
  say(13, nodes::Join{.num_nodes = 4});
  expect_in(last<nodes::Refusal>(13).reason,
            "its --nnodes is 4, that of the host 3");
  say(14, nodes::Join{.num_nodes = 3, .node = 3});
  expect_in(last<nodes::Refusal>(14).reason, "is not below --nnodes 3");
  join(12, "c", 2);
  EXPECT_EQ(last<nodes::World>(12).node, 2);
}

TEST_F(RoundsTest, OneThatLeavesBeforeTheStartIsForgotten) {
  join(10, "a");
  join(11, "b");
  leave(11);
  join(12, "c");
  EXPECT_TRUE(heard_.empty());
  join(11, "d");
  EXPECT_EQ(last<nodes::World>(11).node, 2);
}

TEST_F(RoundsTest, NodesThatDoNotComeAreGivenUp) {
  join(10, "a");
  join(12, "b");
  pass(58);
  EXPECT_TRUE(heard_.empty());
  pass(3);
  EXPECT_EQ(last<nodes::Verdict>(10).exit_code, kTimeoutExitCode);
  expect_in(last<nodes::Verdict>(12).text,
            "for 3 nodes, 2 came (a, b); start the others");
  EXPECT_TRUE(rounds_.is_over());
}

TEST_F(RoundsTest, AFailureEndsAllAndTheHostJudges) {
  form();
  say(11, nodes::Ending{});
  EXPECT_EQ(last<nodes::End>(10).kind, nodes::End::Kind::kFailure);
  EXPECT_EQ(last<nodes::End>(12).kind, nodes::End::Kind::kFailure);
  last<nodes::World>(11);  // It knows.
  say(10, nodes::Result{.text = "r0"});
  say(11, nodes::Result{.text = "r2"});
  last<nodes::End>(10);
  say(12, nodes::Result{.text = "r1"});
  const auto results = last<nodes::Results>(10);
  ASSERT_EQ(results.nodes.size(), 3u);
  EXPECT_EQ(results.nodes[1].text, "r1");
  EXPECT_EQ(results.nodes[1].entry.host_name, "a");
  // Only the host judges.
  say(11, nodes::Verdict{.exit_code = 1});
  last<nodes::End>(12);
  say(10, nodes::Verdict{.exit_code = 7, .text = "why"});
  EXPECT_EQ(last<nodes::Verdict>(11).text, "why");
  EXPECT_EQ(last<nodes::Verdict>(12).exit_code, 7);
  EXPECT_TRUE(rounds_.is_over());
}

TEST_F(RoundsTest, AStopReachesAll) {
  form();
  say(12, nodes::Ending{.signal = SIGINT});
  EXPECT_EQ(last<nodes::End>(10).kind, nodes::End::Kind::kStop);
  EXPECT_EQ(last<nodes::End>(11).signal, SIGINT);
}

TEST_F(RoundsTest, AStopBeforeTheStartEndsTheWait) {
  join(10, "a");
  join(11, "b");
  say(11, nodes::Ending{.signal = SIGINT});
  EXPECT_EQ(last<nodes::Verdict>(10).exit_code, 128 + SIGINT);
  expect_in(last<nodes::Verdict>(10).text, "b was asked to stop");
}

TEST_F(RoundsTest, SuccessWaitsForTheLastNode) {
  form();
  say(10, nodes::Result{.text = "r"});
  say(11, nodes::Result{.text = "r"});
  leave(11);  // Its part is done.
  last<nodes::World>(12);
  say(12, nodes::Result{.text = "r"});
  EXPECT_EQ(last<nodes::Results>(10).nodes[2].loss, "");
}

TEST_F(RoundsTest, ALostNodeEndsTheOthersAndItsLossIsItsResult) {
  form();
  leave(11);
  last<nodes::End>(10);
  last<nodes::End>(12);
  say(10, nodes::Result{.text = "r0"});
  say(12, nodes::Result{.text = "r1"});
  const auto results = last<nodes::Results>(10);
  EXPECT_EQ(results.nodes[2].loss, "gone");
  EXPECT_GT(results.nodes[2].lost_at, 0);
}

TEST_F(RoundsTest, ASilentNodeIsLost) {
  form();
  pass(14, {11});
  last<nodes::World>(10);
  pass(2, {11});
  last<nodes::End>(10);
  EXPECT_EQ(lost_, (std::vector<MemberId>{11}));
  say(10, nodes::Result{});
  say(12, nodes::Result{});
  expect_in(last<nodes::Results>(10).nodes[2].loss,
            "no sign of life for 15.0 s");
}

TEST_F(RoundsTest, ARestartKeepsNumbersAndFillsThePlaceOfALostNode) {
  form();
  leave(12);  // node 1
  say(10, nodes::Result{});
  say(11, nodes::Result{});
  say(10, nodes::Verdict{.is_restart = true, .delay_seconds = 1});
  EXPECT_TRUE(last<nodes::Verdict>(11).is_restart);
  join(10, "c");
  join(11, "b");
  last<nodes::Verdict>(11);
  join(13, "zzz");
  EXPECT_EQ(last<nodes::World>(13).node, 1);
  EXPECT_EQ(last<nodes::World>(13).attempt, 1);
  EXPECT_EQ(last<nodes::World>(11).node, 2);
}

TEST_F(RoundsTest, OneThatComesWhileTheJobRunsWaitsForAPlace) {
  form();
  join(13, "late");
  expect_in(last<nodes::Queued>(13).reason, "the job has its 3 nodes");
  leave(11);
  say(10, nodes::Result{});
  say(12, nodes::Result{});
  say(10, nodes::Verdict{.is_restart = true});
  join(10, "c");
  join(12, "a");
  EXPECT_EQ(last<nodes::World>(13).node, 2);
}

TEST_F(RoundsTest, ARestartWaitsForTheHostAlsoWhenThereAreEnoughOthers) {
  form();
  join(13, "late");
  say(11, nodes::Ending{});
  for (const MemberId id : {10, 11, 12}) say(id, nodes::Result{});
  say(10, nodes::Verdict{.is_restart = true});
  join(11, "b");
  join(12, "a");
  last<nodes::Verdict>(12);
  join(10, "c");
  EXPECT_EQ(last<nodes::World>(10).node, 0);
  last<nodes::World>(12);
}

TEST_F(RoundsTest, OneWithATakenNumberWaitsUntilTheOtherIsGone) {
  join(10, "a", 0);
  join(11, "b", 1);
  join(12, "c", 2);
  // Started again on a spare machine before the old connection has ended.
  join(13, "spare", 1);
  expect_in(last<nodes::Queued>(13).reason, "--node-rank 1 is taken by b");
  now_ns_ += kSecond;
  leave(11);
  say(10, nodes::Result{});
  say(12, nodes::Result{});
  say(10, nodes::Verdict{.is_restart = true});
  join(10, "a", 0);
  join(12, "c", 2);
  EXPECT_EQ(last<nodes::World>(13).node, 1);
  EXPECT_EQ(last<nodes::World>(13).attempt, 1);
  for (const MemberId id : {10, 12, 13}) say(id, nodes::Result{});
  // Compared when it came, not when it got its place.
  EXPECT_NEAR(last<nodes::Results>(10).nodes[1].clock_offset, 1, 1e-9);
}

TEST_F(RoundsTest, OneWithATakenNumberDoesNotWaitForEver) {
  join(10, "a", 0);
  join(11, "b", 1);
  // The same machine: it may have been killed and started again.
  join(13, "b", 1);
  last<nodes::Queued>(13);
  join(12, "c", 2);
  EXPECT_EQ(last<nodes::World>(11).node, 1);
  pass(58);
  last<nodes::Queued>(13);
  pass(3);
  expect_in(last<nodes::Refusal>(13).reason, "--node-rank 1 is taken by b");
  EXPECT_EQ(rounds_.take_dismissed(), (std::vector<MemberId>{13}));
}

TEST_F(RoundsTest, OneThatWaitsForANumberLearnsThatTheJobEnded) {
  join(10, "a", 0);
  join(11, "b", 1);
  join(12, "c", 2);
  join(13, "d", 2);
  join(14, "e", 2);
  leave(14);
  for (const MemberId id : {10, 11, 12}) say(id, nodes::Result{});
  say(10, nodes::Verdict{});
  expect_in(last<nodes::Refusal>(13).reason, "ended without this node");
  last<nodes::Queued>(14);
}

TEST_F(RoundsTest, NotesReachTheOthersWithTheNameOfTheNode) {
  join(11, "b");
  say(11, nodes::Note{"too early"});
  join(10, "c");
  join(12, "a");
  say(12, nodes::Note{"rank 3 is stuck"});
  EXPECT_EQ(last<nodes::Note>(10).text, "a (node 1): rank 3 is stuck");
  EXPECT_EQ(last<nodes::Note>(11).text, "a (node 1): rank 3 is stuck");
  last<nodes::World>(12);
  for (int i = 0; i < 1000; ++i) say(12, nodes::Note{"again"});
  EXPECT_LE(heard_[10].size(), 110u);
}

TEST_F(RoundsTest, OneTooManyLearnsThatTheJobEnded) {
  form();
  join(13, "late");
  for (const MemberId id : {10, 11, 12}) say(id, nodes::Result{});
  say(10, nodes::Verdict{});
  expect_in(last<nodes::Refusal>(13).reason, "ended without this node");
  join(14, "later");
  expect_in(last<nodes::Refusal>(14).reason, "the job has ended");
}

TEST_F(RoundsTest, OnlyWhenAllNodesAreStuckIsTheJobStuck) {
  form();
  say(10, nodes::Alive{.is_stuck = true});
  say(11, nodes::Alive{.is_stuck = true});
  last<nodes::World>(10);
  say(11, nodes::Alive{.is_stuck = false});
  say(12, nodes::Alive{.is_stuck = true});
  last<nodes::World>(10);
  say(11, nodes::Alive{.is_stuck = true});
  EXPECT_EQ(last<nodes::End>(11).kind, nodes::End::Kind::kStuck);
  EXPECT_EQ(last<nodes::End>(12).kind, nodes::End::Kind::kStuck);
}

TEST_F(RoundsTest, ClocksOfNodesAreCompared) {
  now_ns_ += 7 * kSecond;
  form();  // Their clocks say 1000.
  for (const MemberId id : {10, 11, 12}) say(id, nodes::Result{});
  EXPECT_NEAR(last<nodes::Results>(10).nodes[1].clock_offset, 8, 1e-9);
}

TEST_F(RoundsTest, StrangeMessagesChangeNothing) {
  say(99, nodes::Result{});
  say(99, nodes::Ending{});
  say(99, nodes::Verdict{});
  leave(99);
  join(10, "a");
  say(10, nodes::Result{});
  say(10, nodes::Ending{});
  say(10, nodes::World{});
  say(10, nodes::Verdict{});
  EXPECT_TRUE(heard_.empty());
  EXPECT_FALSE(rounds_.is_over());
}

}  // namespace
}  // namespace lockstep

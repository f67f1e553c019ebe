// The rounds of jobs with --recover memory.
#include <csignal>

#include "support/messages.h"
#include "unit/nodes/members.h"

namespace lockstep {
namespace {

using nodes::End;
using nodes::MemberId;
using testing::expect_in;

class RecoveringMembers : public testing::Members {
 protected:
  using Members::Members;

  void expect_suspended(const std::vector<MemberId>& ids) {
    for (const MemberId id : ids) {
      EXPECT_EQ(last<End>(id).kind, End::Kind::kSuspend);
    }
  }

  // All that are named tell their results, and the host gives a verdict. They
  // come again, those of `holders` with the state.
  void go_on(const std::vector<MemberId>& ids, const nodes::Verdict& verdict,
             const std::set<MemberId>& holders) {
    for (const MemberId id : ids) say(id, nodes::Result{});
    last<nodes::Results>(10);
    say(10, verdict);
    holders_ = holders;
    for (const MemberId id : ids) join(id, "n");
  }

  int generation() { return last<nodes::World>(10).generation; }

  static nodes::Verdict keeping() {
    return {.is_restart = true, .is_counted = false, .keeps_state = true};
  }
};

// Members 10, 11 and 12 are always there.
class RecoveringRounds : public RecoveringMembers {
 protected:
  RecoveringRounds()
      : RecoveringMembers({.num_nodes = 3,
                           .keeps_state = true,
                           .join_seconds = 60,
                           .alive_seconds = 5,
                           .max_missed = 3}) {
    for (const MemberId id : kAll) join(id, "n");
  }

  const std::vector<MemberId> kAll = {10, 11, 12};
};

TEST_F(RecoveringRounds, ADeathSuspendsTheOtherNodes) {
  say(11, nodes::Ending{.suspends = true});
  expect_suspended({10, 12});
  last<nodes::World>(11);  // It knows.
}

TEST_F(RecoveringRounds, ALostNodeSuspendsTheOthers) {
  leave(12);
  expect_suspended({10, 11});
}

TEST_F(RecoveringRounds, ANodeThatIsLostMeanwhileIsSaidToo) {
  say(11, nodes::Ending{.suspends = true});
  heard_.clear();
  leave(12);
  expect_suspended({10, 11});
}

TEST_F(RecoveringRounds, AnErrorEndsTheOthers) {
  say(11, nodes::Ending{});
  EXPECT_EQ(last<End>(10).kind, End::Kind::kFailure);
}

TEST_F(RecoveringRounds, AStopEndsTheOthers) {
  say(11, nodes::Ending{.signal = SIGINT});
  EXPECT_EQ(last<End>(10).kind, End::Kind::kStop);
}

TEST_F(RecoveringRounds, TheGenerationCountsWorldsThatHandTheirStateOn) {
  EXPECT_EQ(generation(), 0);
  say(11, nodes::Ending{.suspends = true});
  go_on(kAll, keeping(), {10, 11, 12});
  EXPECT_EQ(generation(), 1);
  EXPECT_EQ(last<nodes::World>(12).attempt, 1);
  EXPECT_EQ(last<nodes::World>(12).num_restarts, 0);
  leave(12);
  go_on({10, 11}, keeping(), {11});
  join(13, "new");
  // All are told the same, also the new one.
  for (const MemberId id : {10, 11, 13}) {
    EXPECT_EQ(last<nodes::World>(id).generation, 2);
  }
}

TEST_F(RecoveringRounds, WithoutTheStateAllStart) {
  say(11, nodes::Ending{.suspends = true});
  go_on(kAll, keeping(), {10});
  EXPECT_EQ(generation(), 1);
  say(11, nodes::Ending{.suspends = true});
  go_on(kAll, keeping(), {});
  EXPECT_EQ(generation(), 0);
  say(11, nodes::Ending{.suspends = true});
  go_on(kAll, keeping(), {12});
  EXPECT_EQ(generation(), 1);
}

TEST_F(RecoveringRounds, AVerdictThatKeepsNothingStartsAll) {
  say(11, nodes::Ending{.suspends = true});
  go_on(kAll, keeping(), {10, 11, 12});
  say(11, nodes::Ending{});
  go_on(kAll, {.is_restart = true}, {12});
  EXPECT_EQ(generation(), 0);
}

TEST_F(RecoveringRounds, ANodeWithAnotherFlagIsRefusedWithTheFix) {
  say(13, nodes::Join{.num_nodes = 3});
  expect_in(last<nodes::Refusal>(13).reason,
            "its --recover is restart, that of the host memory; give every "
            "node the same");
  EXPECT_EQ(rounds_.take_dismissed(), (std::vector<MemberId>{13}));
}

class RestartingRounds : public testing::Members {
 protected:
  RestartingRounds() : Members({.num_nodes = 3}) {}
};

TEST_F(RestartingRounds, ANodeThatWouldKeepItsStateIsRefusedWithTheFix) {
  say(13, nodes::Join{.num_nodes = 3, .keeps_state = true});
  expect_in(last<nodes::Refusal>(13).reason,
            "its --recover is memory, that of the host restart; give every "
            "node the same");
}

// With --nnodes 2:4; members 10, 11 and 12 are there.
class ElasticRecoveringRounds : public RecoveringMembers {
 protected:
  ElasticRecoveringRounds()
      : RecoveringMembers({.num_nodes = 4,
                           .min_nodes = 2,
                           .keeps_state = true,
                           .join_seconds = 60,
                           .last_call_seconds = 30,
                           .alive_seconds = 5,
                           .max_missed = 3}) {
    join(10, "a");
    join(11, "b");
    join(12, "c");
    pass(31);
  }
};

TEST_F(ElasticRecoveringRounds, OneThatMayLiveSuspendsTheOthers) {
  leave(11, nodes::Fate::kUnknown);
  expect_suspended({10, 12});
}

TEST_F(ElasticRecoveringRounds, ANodeThatComesSuspendsTheOthers) {
  join(13, "d");
  pass(1);
  expect_suspended({10, 11, 12});
  go_on({10, 11, 12}, keeping(), {10, 11, 12});
  EXPECT_EQ(last<nodes::World>(13).num_nodes, 4);
  EXPECT_EQ(last<nodes::World>(13).generation, 1);
}

TEST_F(ElasticRecoveringRounds, ANodeThatLeavesSuspendsAll) {
  say(11, nodes::Ending{.signal = SIGTERM, .is_leaving = true});
  last<nodes::World>(10);  // Others may be asked to leave, too.
  pass(1);
  expect_suspended({10, 11, 12});
  for (const MemberId id : {10, 11, 12}) say(id, nodes::Result{});
  EXPECT_TRUE(last<nodes::Results>(10).nodes[1].is_leaving);
}

TEST_F(ElasticRecoveringRounds, AllSaveWhenTooFewWouldStay) {
  say(11, nodes::Ending{.signal = SIGTERM, .is_leaving = true});
  say(12, nodes::Ending{.signal = SIGTERM, .is_leaving = true});
  for (const MemberId id : {10, 11, 12}) {
    EXPECT_EQ(last<End>(id).kind, End::Kind::kStop);
    EXPECT_EQ(last<End>(id).signal, SIGTERM);
  }
  heard_.clear();
  pass(5);
  EXPECT_TRUE(heard_.empty());
}

// Start 7 had three nodes, and its host is lost.
class RecoveringSuccession : public RecoveringMembers {
 protected:
  RecoveringSuccession()
      : RecoveringMembers({.num_nodes = 4,
                           .min_nodes = 1,
                           .keeps_state = true,
                           .join_seconds = 60,
                           .lost_world = nodes::LostWorld{.attempt = 6,
                                                          .generation = 5,
                                                          .num_nodes = 3,
                                                          .departed = {0}}}) {}

  void all_come_back() {
    join(10, "n", std::nullopt, nodes::FormerPlace{.attempt = 6, .node = 1});
    join(11, "n", std::nullopt, nodes::FormerPlace{.attempt = 6, .node = 2});
  }
};

TEST_F(RecoveringSuccession, GoesOnWithTheStateOfTheLostWorld) {
  holders_ = {11};
  all_come_back();
  EXPECT_EQ(generation(), 6);
}

TEST_F(RecoveringSuccession, StartsAnewWithoutTheState) {
  all_come_back();
  EXPECT_EQ(generation(), 0);
}

}  // namespace
}  // namespace lockstep

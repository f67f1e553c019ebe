// The rounds of a host that takes the place of one that is lost.
#include "lockstep/error.h"
#include "support/messages.h"
#include "unit/nodes/members.h"

namespace lockstep {
namespace {

using nodes::LostWorld;
using testing::expect_in;

// Start 7 of a job with --nnodes 1:5 had this world.
class Succession : public testing::Members {
 protected:
  explicit Succession(LostWorld world)
      : Members({.num_nodes = 5,
                 .min_nodes = 1,
                 .join_seconds = 60,
                 .alive_seconds = 5,
                 .max_missed = 3,
                 .lost_world = std::move(world)}) {}

  // Member 10 is the new host.
  void come_back(nodes::MemberId id, int node) {
    join(id, "n", std::nullopt, nodes::FormerPlace{.attempt = 6, .node = node});
  }

  void expect_end(const std::string& text) {
    EXPECT_EQ(last<nodes::Verdict>(10).exit_code, kPeerExitCode);
    expect_in(last<nodes::Verdict>(10).text, text);
    EXPECT_TRUE(rounds_.is_over());
  }
};

LostWorld world_of(int num_nodes, std::set<int> departed,
                   std::set<int> silent) {
  return {.attempt = 6,
          .num_restarts = 2,
          .num_nodes = num_nodes,
          .departed = std::move(departed),
          .silent = std::move(silent),
          .wait_seconds = 15,
          .settle_seconds = 0};
}

class HostKilled : public Succession {
 protected:
  HostKilled() : Succession(world_of(4, {0}, {})) {}
};

TEST_F(HostKilled, AllOthersGoOnAtOnce) {
  come_back(10, 1);
  come_back(12, 3);
  EXPECT_TRUE(heard_.empty());
  come_back(11, 2);
  const auto world = last<nodes::World>(12);
  EXPECT_EQ(world.node, 2);
  EXPECT_EQ(world.num_nodes, 3);
  EXPECT_EQ(world.attempt, 7);
  EXPECT_EQ(world.num_restarts, 2);
  EXPECT_EQ(last<nodes::World>(10).node, 0);
}

TEST_F(HostKilled, MostOfThemWaitForTheOthers) {
  come_back(10, 1);
  come_back(12, 3);
  pass(14);
  EXPECT_TRUE(heard_.empty());
  pass(2);
  EXPECT_EQ(last<nodes::World>(12).num_nodes, 2);
  // One that comes later is one more.
  come_back(11, 2);
  pass(3);
  EXPECT_EQ(last<nodes::End>(12).kind, nodes::End::Kind::kRegroup);
}

TEST_F(HostKilled, OneOfThreeEnds) {
  come_back(10, 2);
  pass(16);
  expect_end("1 of the 4 nodes of the last start found each other");
}

TEST_F(HostKilled, NewcomersAndNodesOfEarlierWorldsHaveNoVote) {
  come_back(10, 2);
  join(11, "new");
  join(12, "old", std::nullopt, nodes::FormerPlace{.attempt = 5, .node = 1});
  pass(16);
  expect_end("1 of the 4 nodes");
}

class TwoOfThreeLeft : public Succession {
 protected:
  TwoOfThreeLeft() : Succession(world_of(3, {0}, {})) {}
};

TEST_F(TwoOfThreeLeft, TheHalfWithTheLowestNumberGoesOn) {
  come_back(10, 1);
  pass(16);
  EXPECT_EQ(last<nodes::World>(10).num_nodes, 1);
}

TEST_F(TwoOfThreeLeft, TheOtherHalfEnds) {
  come_back(10, 2);
  pass(16);
  expect_end("1 of the 3 nodes");
}

class SilentHost : public Succession {
 protected:
  SilentHost() : Succession(world_of(3, {}, {0})) {}
};

TEST_F(SilentHost, MostGoOn) {
  come_back(10, 1);
  come_back(11, 2);
  EXPECT_EQ(last<nodes::World>(11).num_nodes, 2);
}

class SilentHostOfTwo : public Succession {
 protected:
  SilentHostOfTwo() : Succession(world_of(2, {}, {0})) {}
};

TEST_F(SilentHostOfTwo, TheOtherEnds) {
  come_back(10, 1);
  expect_end("1 of the 2 nodes");
}

class UnsettledWorld : public Succession {
 protected:
  static LostWorld unsettled() {
    LostWorld world = world_of(3, {}, {0});
    world.settle_seconds = 7;
    return world;
  }
  UnsettledWorld() : Succession(unsettled()) {}
};

TEST_F(UnsettledWorld, WaitsUntilProcessesElsewhereHaveEnded) {
  come_back(10, 1);
  come_back(11, 2);
  pass(6);
  EXPECT_TRUE(heard_.empty());
  pass(2);
  EXPECT_EQ(last<nodes::World>(11).num_nodes, 2);
}

}  // namespace
}  // namespace lockstep

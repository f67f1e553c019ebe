#include "lockstep/launch/succession.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using launch::Succession;

// Node 2 of four.
nodes::World world() {
  return {.attempt = 6,
          .num_restarts = 1,
          .generation = 3,
          .node = 2,
          .num_nodes = 4,
          .addresses = {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}};
}

std::vector<int> nodes_of(const Succession& succession) {
  std::vector<int> nodes;
  for (const auto& candidate : succession.candidates()) {
    nodes.push_back(candidate.node);
  }
  return nodes;
}

TEST(Succession, NeedsAWorld) {
  const Succession succession;
  EXPECT_FALSE(succession.is_possible());
  EXPECT_TRUE(succession.candidates().empty());
  EXPECT_FALSE(succession.former_place());
}

TEST(Succession, TheLowestThatIsLeftHosts) {
  Succession succession;
  succession.begin(world());
  EXPECT_TRUE(succession.is_possible());
  EXPECT_FALSE(succession.lost_world({}));
  succession.lose_host();
  EXPECT_EQ(nodes_of(succession), (std::vector<int>{1, 2, 3}));
  const auto candidates = succession.candidates();
  EXPECT_EQ(candidates[0].address, "10.0.0.2");
  EXPECT_FALSE(candidates[0].is_this_node);
  EXPECT_TRUE(candidates[1].is_this_node);
  EXPECT_EQ(succession.former_place(),
            (nodes::FormerPlace{.attempt = 6, .node = 2}));
  // It is lost before a world has formed.
  succession.choose(candidates[0]);
  succession.lose_sight_of_host();
  EXPECT_EQ(nodes_of(succession), (std::vector<int>{2, 3}));
  const auto lost = succession.lost_world({});
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->attempt, 6);
  EXPECT_EQ(lost->num_restarts, 1);
  EXPECT_EQ(lost->generation, 3);
  EXPECT_EQ(lost->num_nodes, 4);
  EXPECT_EQ(lost->departed, std::set<int>{0});
  EXPECT_EQ(lost->silent, std::set<int>{1});
  EXPECT_GT(lost->settle_seconds,
            launch::RendezvousSettings().keep_alive_interval);
}

TEST(Succession, ANewWorldHasANewHost) {
  Succession succession;
  succession.begin(world());
  succession.lose_host();
  succession.begin(world());
  EXPECT_FALSE(succession.former_place());
  EXPECT_EQ(nodes_of(succession), (std::vector<int>{0, 1, 2, 3}));
}

TEST(Succession, NodesThatLeaveWithTheHostDoNotHost) {
  Succession succession;
  succession.begin(world());
  succession.depart(std::vector<int>{0, 1});
  EXPECT_EQ(nodes_of(succession), (std::vector<int>{2, 3}));
  EXPECT_EQ(succession.lost_world({})->departed, (std::set<int>{0, 1}));
}

TEST(Succession, WithoutASilentHostNothingHasToSettle) {
  Succession succession;
  succession.begin(world());
  succession.lose_host();
  EXPECT_EQ(succession.lost_world({})->settle_seconds, 0);
}

}  // namespace
}  // namespace lockstep

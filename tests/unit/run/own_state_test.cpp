#include "lockstep/run/own_state.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "unit/run/own_states.h"

namespace lockstep::run {
namespace {

using testing::state_of_rank;

World world_of_one() {
  return World::from_environment({.device = DeviceChoice::kCpu}, {});
}

TEST(OwnState, IsARanksOwnWhereThereAreAsManyAsBefore) {
  const World world = world_of_one();
  const Tree all = gather_own_states(world, state_of_rank(0));
  ASSERT_EQ(TreeView(all).as_list().size(), 1u);
  const Tree own = own_state_of(world, all);
  testing::expect_sums(own, {1, 10, 7, 3});
  EXPECT_TRUE(torch::equal(own.at("generator").as_tensor(),
                           state_of_rank(0).at("generator").as_tensor()));
}

TEST(OwnState, HasTheSumsOfThoseThatAreGone) {
  Tree all = Tree::list();
  for (int rank = 0; rank < 3; ++rank) all.push_back(state_of_rank(rank));
  const Tree own = own_state_of(world_of_one(), all);
  // Each rank counts the same skipped steps.
  testing::expect_sums(own, {1 + 2 + 3, 10 + 20 + 30, 7, 3}, 3);
  EXPECT_TRUE(torch::equal(own.at("generator").as_tensor(),
                           state_of_rank(0).at("generator").as_tensor()));
  // What others read is as it was.
  testing::expect_sums(TreeView(all).as_list()[0], {1, 10, 7, 3});
}

}  // namespace
}  // namespace lockstep::run

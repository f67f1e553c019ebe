// What two ranks get of the state of more and of fewer.
#include <gtest/gtest.h>

#include "support/ranks.h"
#include "unit/run/own_states.h"

namespace lockstep::run {
namespace {

using testing::expect_sums;
using testing::state_of_rank;

at::Tensor generator_of(const Tree& own) {
  return own.at("generator").as_tensor();
}

TEST(OwnStateOfRanks, IsDividedAgainWhenTheirNumberChanges) {
  testing::run_ranks({.size = 2}, [](const World& world) {
    const int rank = world.rank();
    const Tree both = gather_own_states(world, state_of_rank(rank));
    const Tree same = own_state_of(world, both);
    expect_sums(same, {1.0 + rank, 10.0 * (1 + rank), 7, 3});
    EXPECT_TRUE(
        torch::equal(generator_of(same), generator_of(state_of_rank(rank))));

    Tree three = both;
    three.push_back(state_of_rank(2));
    const Tree fewer = own_state_of(world, three);
    EXPECT_TRUE(
        torch::equal(generator_of(fewer), generator_of(state_of_rank(rank))));
    const Tree more = own_state_of(world, Tree::list({state_of_rank(0)}));
    if (rank == 0) {
      expect_sums(fewer, {6, 60, 7, 3}, 3);
      expect_sums(more, {1, 10, 7, 3});
      EXPECT_TRUE(more.find("generator"));
    } else {
      // Rank 0 has the sums of all; each rank has the counts.
      expect_sums(fewer, {0, 0, 7, 3}, 0);
      expect_sums(more, {0, 0, 7, 3}, 0);
      EXPECT_FALSE(more.find("generator"));
    }
    EXPECT_EQ(parts_of(more), std::vector<std::string>{"first"});
  });
}

}  // namespace
}  // namespace lockstep::run

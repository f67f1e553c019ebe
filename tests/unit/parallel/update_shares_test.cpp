#include "lockstep/parallel/update_shares.h"

#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

TEST(UpdateShares, AreEqualButForWholeVectors) {
  const std::vector<int64_t> counts = {5000, 7, 90000, 0, 3000};
  for (const int num_ranks : {1, 2, 3, 16}) {
    SCOPED_TRACE(num_ranks);
    const auto edges = split_evenly(counts, num_ranks);
    ASSERT_EQ(edges.size(), counts.size());
    std::vector<int64_t> shares(num_ranks);
    for (size_t i = 0; i < counts.size(); ++i) {
      ASSERT_EQ(edges[i].size(), num_ranks + 1U);
      EXPECT_EQ(edges[i].front(), 0);
      EXPECT_EQ(edges[i].back(), counts[i]);
      for (int rank = 0; rank < num_ranks; ++rank) {
        EXPECT_LE(edges[i][rank], edges[i][rank + 1]);
        shares[rank] += edges[i][rank + 1] - edges[i][rank];
        if (edges[i][rank] < counts[i]) {
          EXPECT_EQ(edges[i][rank] % 1024, 0);
        }
      }
    }
    for (const int64_t share : shares) {
      EXPECT_NEAR(static_cast<double>(share), 98007.0 / num_ranks, 1024);
    }
  }
}

TEST(UpdateShares, AWholeTensorGoesToARankThatHasSomeOfIt) {
  // Rank 0 has all of the first and half of the second.
  const std::vector<ElementEdges> edges = {
      {0, 4096, 4096}, {0, 2048, 4096}, {0, 0, 100}};
  EXPECT_EQ(assign_whole_tensors(edges), (std::vector{0, 1, 1}));
  // The last one has fewer elements than ranks.
  EXPECT_EQ(assign_whole_tensors(split_evenly(std::vector<int64_t>{3}, 4)),
            std::vector{3});
}

}  // namespace
}  // namespace lockstep::parallel

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lockstep/distributed_sampler.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

// What all ranks together read in one epoch.
std::multiset<int64_t> read_by_all(int64_t num_samples, int size,
                                   SamplerConfig config, int64_t epoch = 0) {
  std::multiset<int64_t> seen;
  for (int rank = 0; rank < size; ++rank) {
    const DistributedSampler sampler(num_samples, {rank, size}, config);
    const auto indices = sampler.indices(epoch);
    EXPECT_EQ(static_cast<int64_t>(indices.size()), sampler.size());
    seen.insert(indices.begin(), indices.end());
  }
  return seen;
}

TEST(DistributedSampler, PadsSoThatRanksRunTheSameNumberOfSteps) {
  EXPECT_EQ(read_by_all(10, 4, {}).size(), 12u);
  EXPECT_EQ(read_by_all(10, 4, {.uneven = Uneven::kDrop}).size(), 8u);
  EXPECT_EQ(read_by_all(3, 8, {}).size(), 8u);
}

TEST(DistributedSampler, ExactReadsEverySampleOnce) {
  for (const int64_t num_samples : {1, 2, 7, 10, 64}) {
    for (const int size : {1, 2, 3, 4, 16}) {
      const auto seen =
          read_by_all(num_samples, size, {.uneven = Uneven::kExact}, 5);
      EXPECT_EQ(static_cast<int64_t>(seen.size()), num_samples);
      EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(),
                seen.size());
    }
  }
}

TEST(DistributedSampler, ChangesOrderWithTheEpochAndTheSeed) {
  const DistributedSampler sampler(100, {1, 2}, {.seed = 7});
  EXPECT_EQ(sampler.indices(3), sampler.indices(3));
  EXPECT_NE(sampler.indices(3), sampler.indices(4));
  EXPECT_NE(sampler.indices(3),
            DistributedSampler(100, {1, 2}, {.seed = 8}).indices(3));
}

TEST(DistributedSampler, KeepsTheOrderWithoutShuffle) {
  EXPECT_EQ(DistributedSampler(7, {1, 2}, {.shuffle = false}).indices(9),
            (std::vector<int64_t>{1, 3, 5, 0}));
}

TEST(DistributedSampler, RefusesAnEmptyDataSetAndAWrongShare) {
  EXPECT_THROW(DistributedSampler(0, {0, 1}), ConfigError);
  EXPECT_THROW(DistributedSampler(5, {2, 2}), ConfigError);
}

}  // namespace
}  // namespace lockstep

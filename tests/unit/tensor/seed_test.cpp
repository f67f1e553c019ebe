#include <gtest/gtest.h>

#include <set>

#include "lockstep/random.h"

namespace lockstep {
namespace {

TEST(SampleSeed, DependsOnSeedEpochAndIndex) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (int64_t epoch = 0; epoch < 10; ++epoch) {
      for (int64_t index = 0; index < 100; ++index) {
        seen.insert(sample_seed(seed, epoch, index));
      }
    }
  }
  EXPECT_EQ(seen.size(), 10u * 10 * 100);
}

TEST(SampleSeed, StaysTheSameForEver) {
  // A checkpoint of today must give the same augmentations tomorrow.
  EXPECT_EQ(sample_seed(0, 0, 0), 18152189527315630385ULL);
  EXPECT_EQ(sample_seed(7, 3, 12345), 11066207729042730386ULL);
}

}  // namespace
}  // namespace lockstep

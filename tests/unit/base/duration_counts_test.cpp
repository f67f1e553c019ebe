#include "lockstep/base/duration_counts.h"

#include <gtest/gtest.h>

#include <memory>

namespace lockstep {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

struct Filled {
  void add(int count, int64_t milliseconds) {
    for (int i = 0; i < count; ++i) counts->add(milliseconds * kMillisecond);
  }
  std::unique_ptr<base::DurationCounts> counts =
      std::make_unique<base::DurationCounts>();
};

TEST(DurationCounts, HasNoOpinionBeforeTwentySamples) {
  Filled filled;
  filled.add(19, 1);
  EXPECT_FALSE(filled.counts->p99_seconds());
  filled.add(1, 1);
  EXPECT_EQ(filled.counts->p99_seconds(), 0);
  EXPECT_EQ(filled.counts->num_samples(), 20);
}

TEST(DurationCounts, RoundsDownByLessThanAFifth) {
  for (const int64_t milliseconds : {100, 150, 800, 5000, 60'000, 250'000}) {
    Filled filled;
    filled.add(50, milliseconds);
    const double seconds = static_cast<double>(milliseconds) * 1e-3;
    ASSERT_TRUE(filled.counts->p99_seconds());
    EXPECT_LE(*filled.counts->p99_seconds(), seconds * (1 + 1e-9));
    EXPECT_GT(*filled.counts->p99_seconds(), 0.84 * seconds);
  }
}

TEST(DurationCounts, OneInAHundredDoesNotCount) {
  Filled filled;
  filled.add(990, 1);
  filled.add(10, 5000);
  EXPECT_EQ(filled.counts->p99_seconds(), 0);
  filled.add(5, 5000);
  EXPECT_GT(filled.counts->p99_seconds(), 4);
}

TEST(DurationCounts, TheLongestHaveNoBound) {
  Filled filled;
  filled.add(20, 1000'000);
  EXPECT_FALSE(filled.counts->p99_seconds());
}

TEST(DurationCounts, OldOnesFade) {
  Filled filled;
  filled.add(3000, 5000);
  EXPECT_GT(filled.counts->p99_seconds(), 4);
  filled.add(500'000, 1);
  EXPECT_EQ(filled.counts->p99_seconds(), 0);
  EXPECT_LT(filled.counts->num_samples(), 100'000);
}

}  // namespace
}  // namespace lockstep

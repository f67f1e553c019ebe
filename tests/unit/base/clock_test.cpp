#include "lockstep/base/clock.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Clock, MonotonicTimeNeverGoesBack) {
  const int64_t first = base::monotonic_ns();
  EXPECT_GE(base::monotonic_ns(), first);
}

TEST(Clock, SecondsBetweenCountsNanoseconds) {
  EXPECT_DOUBLE_EQ(base::seconds_between(1'000'000'000, 3'500'000'000), 2.5);
}

TEST(Clock, LocalTimestampHasTheFormOfTorchrun) {
  const std::string text = base::local_timestamp(1'700'000'000);
  ASSERT_EQ(text.size(), 19u);
  EXPECT_EQ(text.substr(0, 5), "2023-");
  EXPECT_EQ(text[10], '_');
}

}  // namespace
}  // namespace lockstep

#include "lockstep/base/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace lockstep {
namespace {

TEST(Workers, DoEveryItemOnceAndTellHowFarTheyAre) {
  for (const int64_t threads : {0, 1, 4, 100}) {
    std::vector<std::atomic<int>> done(50);
    std::vector<int64_t> told;
    base::run_workers(
        50, threads, [&](int64_t i) { ++done[static_cast<size_t>(i)]; },
        [&](int64_t so_far, int64_t total) {
          EXPECT_EQ(total, 50);
          told.push_back(so_far);
        });
    for (const auto& count : done) EXPECT_EQ(count, 1);
    ASSERT_EQ(told.size(), 50U);
    for (size_t i = 0; i < told.size(); ++i) {
      EXPECT_EQ(told[i], static_cast<int64_t>(i) + 1);
    }
  }
}

TEST(Workers, EndWithTheFirstError) {
  std::atomic<int> num_done = 0;
  const auto work = [&](int64_t i) {
    if (i == 3) throw std::runtime_error("item 3");
    ++num_done;
  };
  EXPECT_THROW(base::run_workers(100, 4, work), std::runtime_error);
  // How far other threads get depends on the machine; a single one stops there.
  num_done = 0;
  EXPECT_THROW(base::run_workers(100, 1, work), std::runtime_error);
  EXPECT_EQ(num_done, 3);
}

TEST(Workers, AreNoMoreThanItems) {
  EXPECT_EQ(base::num_workers(3, 8), 3);
  EXPECT_EQ(base::num_workers(8, 3), 3);
  EXPECT_EQ(base::num_workers(0, 3), 1);
  EXPECT_GE(base::num_workers(1000, 0), 1);
  EXPECT_LE(base::num_workers(1000, 0), 16);
}

}  // namespace
}  // namespace lockstep

#include "lockstep/track/time_table.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(TimeTable, ShowsMillisecondsAndPercent) {
  EXPECT_EQ(track::time_table({.data = 6.3,
                               .forward = 1,
                               .backward = 2,
                               .exchange = 0.1,
                               .optimizer = 0.5,
                               .other = 0.1,
                               .steps = 100}),
            "time per step, mean of 100 steps:\n"
            "  data            63.00 ms   63%\n"
            "  forward         10.00 ms   10%\n"
            "  backward        20.00 ms   20%\n"
            "  exchange         1.00 ms    1%\n"
            "  optimizer        5.00 ms    5%\n"
            "  other            1.00 ms    1%\n"
            "  total          100.00 ms  100%\n"
            "the loader is the bottleneck: 63% of the time waits for data; "
            "raise --workers");
}

TEST(TimeTable, NamesTheLargestWait) {
  EXPECT_EQ(track::time_reading(
                {.data = 30, .forward = 30, .exchange = 40, .steps = 1}),
            "gradient synchronization is the bottleneck: 40% of the time "
            "waits for it; raise --batch_size or accumulate over several "
            "steps");
  EXPECT_EQ(
      track::time_reading({.forward = 70,
                           .backward = 130,
                           .steps = 10,
                           .launch_bound_steps = 6}),
      "launch-bound: in 60% of the steps the GPU waits for the host, which "
      "launches kernels one by one; train without --no_cuda_graph, or raise "
      "--batch_size");
  EXPECT_EQ(
      track::time_reading(
          {.data = 130, .forward = 70, .steps = 10, .launch_bound_steps = 6})
          .substr(0, 10),
      "the loader");
  EXPECT_EQ(track::time_reading({.forward = 70, .other = 30, .steps = 1}),
            "30% of the time is spent outside of the steps; save, evaluate and "
            "log less often");
}

TEST(TimeTable, SmallWaitsAreNoBottleneck) {
  EXPECT_EQ(track::time_reading({.data = 20,
                                 .forward = 20,
                                 .backward = 30,
                                 .exchange = 20,
                                 .optimizer = 10,
                                 .steps = 1}),
            "compute-bound: 60% of the time is forward, backward and "
            "optimizer");
}

TEST(TimeTable, NothingMeasuredIsSaid) {
  EXPECT_EQ(track::time_table({}), "no step was measured");
  EXPECT_EQ(track::time_table({.steps = 3}), "no step was measured");
  EXPECT_EQ(track::time_table({.data = 3}), "no step was measured");
}

}  // namespace
}  // namespace lockstep

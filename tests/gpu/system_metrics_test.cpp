// What a GPU tells of itself reaches the records of a run.
#include "lockstep/track/system_metrics.h"

#include <gtest/gtest.h>

#include <map>

#include "lockstep/base/clock.h"

namespace lockstep {
namespace {

TEST(SystemMetricsOfGpus, EveryGpuTellsItsState) {
  track::SystemMetrics system("/");
  const auto models = system.gpus().models();
  ASSERT_FALSE(models.empty());
  EXPECT_FALSE(models[0].name.empty());
  EXPECT_GT(models[0].memory_bytes, uint64_t{1} << 30);
  std::map<std::string, double> metrics;
  for (const auto& [name, value] : system.sample()) metrics[name] = value;
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string gpu = "gpu." + std::to_string(i) + ".";
    for (const char* name : {"gpu", "memory", "memoryAllocated"}) {
      EXPECT_GE(metrics.at(gpu + name), 0) << name;
      EXPECT_LE(metrics.at(gpu + name), 100) << name;
    }
    EXPECT_GT(metrics.at(gpu + "memoryAllocatedBytes"), 0);
    EXPECT_GT(metrics.at(gpu + "temp"), 5);
    EXPECT_LT(metrics.at(gpu + "temp"), 110);
    EXPECT_GT(metrics.at(gpu + "powerWatts"), 5);
    EXPECT_GT(metrics.at(gpu + "enforcedPowerLimitWatts"), 50);
    EXPECT_GT(metrics.at(gpu + "powerPercent"), 1);
    EXPECT_GT(metrics.at(gpu + "smClock"), 100);
    EXPECT_GT(metrics.at(gpu + "memoryClock"), 100);
  }
}

TEST(SystemMetricsOfGpus, ASampleTakesMilliseconds) {
  track::SystemMetrics system("/");
  system.sample();
  const int64_t begin = base::monotonic_ns();
  system.sample();
  const double seconds = base::seconds_between(begin, base::monotonic_ns());
  RecordProperty("milliseconds", std::to_string(seconds * 1e3));
  EXPECT_LT(seconds, 0.5);
}

}  // namespace
}  // namespace lockstep

#include "lockstep/track/system_metrics.h"

#include <gtest/gtest.h>

#include <ctime>
#include <map>

namespace lockstep {
namespace {

TEST(SystemMetrics, ProcessorTimeIsReadBehindAnyProgramName) {
  const std::string rest =
      " S 1 2 3 0 -1 4194560 100 0 0 0 1500 250 7 8 20 0 4 0 100 1 2";
  EXPECT_EQ(track::parse_cpu_ticks("42 (program)" + rest), 1750);
  EXPECT_EQ(track::parse_cpu_ticks("42 (a) b (c)" + rest), 1750);
  EXPECT_EQ(track::parse_cpu_ticks(""), std::nullopt);
  EXPECT_EQ(track::parse_cpu_ticks("42 (a) S 1 2"), std::nullopt);
}

TEST(SystemMetrics, MemoryAndThreadsOfTheProcess) {
  const auto use = track::parse_process_status(
      "Name:\tx\nVmPeak:\t  9999 kB\nVmRSS:\t    2048 kB\nThreads:\t7\n");
  ASSERT_TRUE(use);
  EXPECT_EQ(use->resident_bytes, 2048 * 1024);
  EXPECT_EQ(use->num_threads, 7);
  EXPECT_FALSE(track::parse_process_status("Threads:\t7\n"));
  EXPECT_FALSE(track::parse_process_status("VmRSS:\nThreads:\t7\n"));
}

TEST(SystemMetrics, MemoryOfTheMachine) {
  const auto memory = track::parse_meminfo(
      "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:    400 kB\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total_bytes, 1000 * 1024);
  EXPECT_EQ(memory->available_bytes, 400 * 1024);
  EXPECT_FALSE(track::parse_meminfo("MemTotal: 0 kB\nMemAvailable: 0 kB\n"));
  EXPECT_FALSE(track::parse_meminfo(""));
}

TEST(SystemMetrics, NetworkIsTheSumWithoutTheLoopback) {
  const auto traffic = track::parse_network(
      "Inter-|   Receive  |  Transmit\n"
      " face |bytes packets|bytes\n"
      "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
      "  eth0: 100 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n"
      "  ib0:1000 1 0 0 0 0 0 0 3000 1 0 0 0 0 0 0\n");
  ASSERT_TRUE(traffic);
  EXPECT_EQ(traffic->received_bytes, 1100);
  EXPECT_EQ(traffic->sent_bytes, 3020);
  EXPECT_FALSE(track::parse_network("garbage"));
}

TEST(SystemMetrics, AGpuTellsWhatItCan) {
  track::GpuReading reading;
  reading.busy_percent = 75;
  reading.memory_used_bytes = 20;
  reading.memory_total_bytes = 80;
  reading.power_watts = 350;
  reading.power_limit_watts = 700;
  const auto metrics = track::gpu_metrics(3, reading);
  const std::vector<std::pair<std::string, double>> expected = {
      {"gpu.3.gpu", 75},
      {"gpu.3.memoryAllocated", 25},
      {"gpu.3.memoryAllocatedBytes", 20},
      {"gpu.3.powerWatts", 350},
      {"gpu.3.enforcedPowerLimitWatts", 700},
      {"gpu.3.powerPercent", 50}};
  EXPECT_EQ(metrics, expected);
  EXPECT_TRUE(track::gpu_metrics(0, {}).empty());
}

TEST(SystemMetrics, MountPointsAreRootsOfFileSystems) {
  EXPECT_EQ(track::mount_point("/proc/self/fd"), "/proc");
  EXPECT_EQ(track::mount_point("/no/such/path"), "/");
}

TEST(SystemMetrics, ThisMachineGivesPlausibleValues) {
  track::SystemMetrics system("/proc");
  // By processor time, not by the clock: a busy machine may give this process
  // no turn for a while, and /proc counts in ticks of 10 ms.
  volatile double work = 0;
  const std::clock_t begin = std::clock();
  while (std::clock() - begin < CLOCKS_PER_SEC / 10) work = work + 1;
  std::map<std::string, double> metrics;
  for (const auto& [name, value] : system.sample()) metrics[name] = value;
  EXPECT_GT(metrics.at("cpu"), 0);
  EXPECT_LE(metrics.at("cpu"), 101);
  for (const char* name : {"memory_percent", "proc.memory.percent"}) {
    EXPECT_GT(metrics.at(name), 0) << name;
    EXPECT_LE(metrics.at(name), 100) << name;
  }
  EXPECT_GT(metrics.at("proc.memory.rssMB"), 1);
  EXPECT_GT(metrics.at("proc.memory.availableMB"), 1);
  EXPECT_GE(metrics.at("proc.cpu.threads"), 1);
}

}  // namespace
}  // namespace lockstep

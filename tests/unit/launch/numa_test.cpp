#include "lockstep/launch/numa.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <numeric>

#include "lockstep/error.h"
#include "lockstep/launch/gpu_bus.h"
#include "lockstep/launch/plan.h"
#include "lockstep/launch/spawn.h"
#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using Lists = std::vector<launch::CpuList>;
using testing::contains;

// Two sockets of two NUMA nodes of four cores of two threads. Core c has the
// CPUs c and c + 16; two neighbouring cores share a cache. GPU g has the bus
// 0000:<g>0:00.0.
class NumaTest : public ::testing::Test {
 protected:
  static constexpr int kCores = 16;

  NumaTest() {
    for (int cpu = 0; cpu < 2 * kCores; ++cpu) write_cpu(cpu);
    for (int node = 0; node < 4; ++node) {
      const int core = 4 * node;
      write("devices/system/node/node" + std::to_string(node) + "/cpulist",
            range(core, 3) + "," + range(core + kCores, 3));
    }
    // The last ones hold no CPU or are not there.
    write("devices/system/node/possible", "0-5");
    write("devices/system/node/node4/cpulist", "");
    all_.resize(2 * kCores);
    std::iota(all_.begin(), all_.end(), 0);
  }

  void write(const std::string& name, const std::string& text) const {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }

  std::string put_gpu(int gpu, int node) const {
    const auto bus = static_cast<unsigned>(16 * gpu);
    std::string bus_id = launch::sysfs_bus_id(0, bus, 0);
    write("bus/pci/devices/" + bus_id + "/numa_node", std::to_string(node));
    return bus_id;
  }

  // GPUs by their nodes; one worker for each unless said.
  Lists choose(launch::NumaMode mode, const std::vector<int>& nodes,
               int num_workers = 0) const {
    return choose(mode, nodes, num_workers, all_);
  }

  Lists choose(launch::NumaMode mode, const std::vector<int>& nodes,
               int num_workers, const launch::CpuList& allowed) const {
    launch::NumaRequest request{
        .mode = mode, .bus_ids = {}, .allowed = allowed};
    for (const int node : nodes) {
      const int gpu = static_cast<int>(request.bus_ids.size());
      request.bus_ids.push_back(put_gpu(gpu, node));
    }
    request.num_workers =
        num_workers > 0 ? num_workers : static_cast<int>(nodes.size());
    return launch::choose_near_cpus(request, folder_.path());
  }

  std::string refusal(launch::NumaMode mode, const std::vector<int>& nodes,
                      const launch::CpuList& allowed) const {
    try {
      choose(mode, nodes, 0, allowed);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  testing::TempDir folder_;
  launch::CpuList all_;

 private:
  static std::string range(int first, int more) {
    return std::to_string(first) + "-" + std::to_string(first + more);
  }

  void write_cache(const std::string& folder, int level,
                   const std::string& type, const std::string& cpus) const {
    write(folder + "/level", std::to_string(level));
    write(folder + "/type", type);
    write(folder + "/shared_cpu_list", cpus);
  }

  void write_cpu(int cpu) const {
    const int core = cpu % kCores;
    const int pair = core / 2 * 2;
    const std::string folder =
        "devices/system/cpu/cpu" + std::to_string(cpu) + "/";
    const std::string threads =
        std::to_string(core) + "," + std::to_string(core + kCores);
    write(folder + "topology/thread_siblings_list", threads);
    write(folder + "topology/physical_package_id", std::to_string(core / 8));
    write_cache(folder + "cache/index0", 1, "Data", threads);
    write_cache(folder + "cache/index1", 4, "Instruction", "0-31");
    write_cache(folder + "cache/index3", 3, "Unified",
                range(pair, 1) + "," + range(pair + kCores, 1));
    write_cache(folder + "cache/index2", 2, "Unified", threads);
    write(folder + "cache/uevent", "");
  }
};

TEST(CpuLists, AreParsedAsSysfsWritesThem) {
  EXPECT_EQ(launch::parse_cpu_list("0-2,4,6-7\n"),
            (launch::CpuList{0, 1, 2, 4, 6, 7}));
  EXPECT_EQ(launch::parse_cpu_list("8,0-1"), (launch::CpuList{0, 1, 8}));
  EXPECT_EQ(launch::parse_cpu_list("5"), launch::CpuList{5});
  EXPECT_EQ(launch::parse_cpu_list("\n"), launch::CpuList{});
  for (const char* text :
       {"x", "1-", "-1", "3-1", "1-2-3", "1,,2", "0-99999"}) {
    EXPECT_FALSE(launch::parse_cpu_list(text)) << text;
  }
}

TEST(CpuLists, ThisProcessMayRunSomewhere) {
  EXPECT_FALSE(launch::find_allowed_cpus().empty());
}

TEST(BusIds, AreWrittenAsSysfsDoes) {
  EXPECT_EQ(launch::sysfs_bus_id(0, 0x3b, 0), "0000:3b:00.0");
  EXPECT_EQ(launch::sysfs_bus_id(0x10000, 0xDC, 0x1f), "10000:dc:1f.0");
}

TEST_F(NumaTest, NodeGivesAllCpusOfTheNode) {
  EXPECT_EQ(choose(launch::NumaMode::kNode, {3, 1, 1}),
            (Lists{{12, 13, 14, 15, 28, 29, 30, 31},
                   {4, 5, 6, 7, 20, 21, 22, 23},
                   {4, 5, 6, 7, 20, 21, 22, 23}}));
}

TEST_F(NumaTest, SocketGivesAllNodesOfTheSocket) {
  EXPECT_EQ(
      choose(launch::NumaMode::kSocket, {1, 2}),
      (Lists{{0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23},
             {8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31}}));
}

TEST_F(NumaTest, ExclusiveDividesTheCoresOfTheNode) {
  EXPECT_EQ(
      choose(launch::NumaMode::kExclusive, {0, 2, 0}),
      (Lists{{0, 1, 16, 17}, {8, 9, 10, 11, 24, 25, 26, 27}, {2, 3, 18, 19}}));
  EXPECT_EQ(choose(launch::NumaMode::kExclusive, {0, 0, 0}),
            (Lists{{0, 1, 16, 17}, {2, 18}, {3, 19}}));
}

TEST_F(NumaTest, AGpuWithoutWorkerKeepsItsShare) {
  EXPECT_EQ(choose(launch::NumaMode::kExclusive, {0, 0}, 1),
            (Lists{{0, 1, 16, 17}}));
}

TEST_F(NumaTest, WorkersThatShareAGpuAreStillExclusive) {
  EXPECT_EQ(
      choose(launch::NumaMode::kExclusive, {0, 1}, 4),
      (Lists{{0, 1, 16, 17}, {4, 5, 20, 21}, {2, 3, 18, 19}, {6, 7, 22, 23}}));
  EXPECT_EQ(
      choose(launch::NumaMode::kNode, {0}, 2),
      (Lists{{0, 1, 2, 3, 16, 17, 18, 19}, {0, 1, 2, 3, 16, 17, 18, 19}}));
}

TEST_F(NumaTest, CoreComplexGivesOneCacheInTurn) {
  EXPECT_EQ(
      choose(launch::NumaMode::kCoreComplex, {0, 0, 0, 3}),
      (Lists{
          {0, 1, 16, 17}, {2, 3, 18, 19}, {0, 1, 16, 17}, {12, 13, 28, 29}}));
}

TEST_F(NumaTest, OnlyAllowedCpusAreChosen) {
  const launch::CpuList allowed = {1, 2, 3, 18, 19, 20};
  const auto first = [&](launch::NumaMode mode) {
    return choose(mode, {0, 0}, 1, allowed).front();
  };
  EXPECT_EQ(first(launch::NumaMode::kNode), (launch::CpuList{1, 2, 3, 18, 19}));
  EXPECT_EQ(first(launch::NumaMode::kSocket),
            (launch::CpuList{1, 2, 3, 18, 19, 20}));
  EXPECT_EQ(first(launch::NumaMode::kExclusive), (launch::CpuList{1, 2, 18}));
  // The cache with more usable CPUs comes first.
  EXPECT_EQ(first(launch::NumaMode::kCoreComplex),
            (launch::CpuList{2, 3, 18, 19}));
}

TEST_F(NumaTest, WhatCannotBeBoundIsRefusedInOneSentence) {
  const std::string no_information =
      refusal(launch::NumaMode::kNode, {-1}, all_);
  EXPECT_TRUE(contains(no_information, "no NUMA information"));
  EXPECT_TRUE(contains(no_information, "GPU 0000:00:00.0"));
  const std::string no_cpu = refusal(launch::NumaMode::kSocket, {0, 1}, {0});
  EXPECT_TRUE(contains(no_cpu, "NUMA node 1 of GPU 0000:10:00.0"));
  const std::string too_few =
      refusal(launch::NumaMode::kExclusive, {0, 0}, {0, 16});
  EXPECT_TRUE(contains(too_few, "1 usable cores of NUMA node 0"));
  for (const std::string& text : {no_information, no_cpu, too_few}) {
    EXPECT_TRUE(text.starts_with("--numa-binding")) << text;
    EXPECT_FALSE(contains(text, ". ")) << text;
  }
}

TEST_F(NumaTest, AMachineWithoutTheFilesIsNamed) {
  const launch::NumaRequest request{.bus_ids = {"0000:99:00.0"},
                                    .allowed = all_};
  EXPECT_THROW(launch::choose_near_cpus(request, folder_.path()), ConfigError);
}

TEST_F(NumaTest, ThePlanHoldsTheCpusOfEachWorker) {
  const base::Environment environment = {{"PATH", "/usr/bin:/bin"},
                                         {"CUDA_VISIBLE_DEVICES", "2,1"}};
  const std::vector<std::string> arguments = {
      "--nproc=2", "--numa-binding=core-complex", "true"};
  const launch::Plan plan = launch::make_plan(
      launch::parse_run_options(arguments, environment), environment,
      {.count_gpus = [] { return 4; },
       .count_cores = [] { return 32; },
       .find_bus_ids =
           [this](const launch::VisibleGpus& gpus) {
             EXPECT_EQ(gpus.names, (std::vector<std::string>{"2", "1"}));
             return std::vector{put_gpu(2, 3), put_gpu(1, 0)};
           },
       .find_allowed_cpus = [this] { return all_; },
       .sysfs = folder_.path()});
  EXPECT_EQ(plan.worker_cpus, (Lists{{12, 13, 28, 29}, {0, 1, 16, 17}}));
  // No more threads than CPUs.
  EXPECT_EQ(plan.environment.at("OMP_NUM_THREADS"), "4");
}

std::string allowed_list_of_a_worker(const launch::CpuList& cpus) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const base::FileDescriptor read_end(ends[0]);
  base::FileDescriptor write_end(ends[1]);
  launch::Spawner spawner;
  const pid_t pid = spawner.start(
      {.file = "grep",
       .arguments = {"grep", "Cpus_allowed_list", "/proc/self/status"},
       .environment = {{"PATH", "/usr/bin:/bin"}},
       .stdout_fd = write_end.get(),
       .cpus = cpus});
  write_end.reset();
  EXPECT_FALSE(spawner.wait_for_exec());
  std::string text(256, '\0');
  const ssize_t size = read(read_end.get(), text.data(), text.size());
  text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  waitpid(pid, nullptr, 0);
  return text;
}

TEST(SpawnedWorkers, RunOnTheirCpus) {
  const launch::CpuList allowed = launch::find_allowed_cpus();
  const std::string last = std::to_string(allowed.back());
  EXPECT_EQ(allowed_list_of_a_worker({allowed.back()}),
            "Cpus_allowed_list:\t" + last + "\n");
  EXPECT_EQ(launch::find_allowed_cpus(), allowed);
}

TEST(SpawnedWorkers, ThatCannotRunOnTheirCpusAreReported) {
  launch::Spawner spawner;
  const pid_t pid = spawner.start({.file = "true",
                                   .arguments = {"true"},
                                   .environment = {},
                                   .cpus = {8191}});
  EXPECT_THROW(spawner.wait_for_exec(), IoError);
  waitpid(pid, nullptr, 0);
}

}  // namespace
}  // namespace lockstep

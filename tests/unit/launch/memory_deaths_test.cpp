#include "lockstep/launch/memory_deaths.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::contains;
using testing::TempDir;

constexpr const char* kKernelLine =
    "3,1234,99887766,-;Memory cgroup out of memory: Killed process 101 "
    "(python3) total-vm:9000000kB, anon-rss:1040384kB, file-rss:8192kB, "
    "shmem-rss:0kB, UID:0 pgtables:2200kB oom_score_adj:0";

std::vector<launch::Failure> killed_rank(pid_t pid) {
  launch::Failure failure;
  failure.pid = pid;
  failure.exit_code = -SIGKILL;
  return {failure};
}

// A control group of version 2 and a kernel log, in files.
class MemoryDeaths : public ::testing::Test {
 protected:
  MemoryDeaths() {
    std::filesystem::create_directories(folder_.path() / "root/job");
    folder_.write("cgroup", "0::/job\n");
    folder_.write("root/job/memory.max", "1073741824\n");
    folder_.write("kmsg", "6,1,1,-;booted\n");
    set_kills(3);
  }

  launch::MemorySources sources() const {
    return {.cgroup = {.membership = folder_.path() / "cgroup",
                       .root = folder_.path() / "root"},
            .kernel_log = folder_.path() / "kmsg"};
  }
  void set_kills(int count) const {
    folder_.write("root/job/memory.events",
                  "oom 9\noom_kill " + std::to_string(count) + "\n");
  }
  void log(const std::string& line) const {
    std::ofstream(folder_.path() / "kmsg", std::ios::app) << line << "\n";
  }

  TempDir folder_;
};

TEST_F(MemoryDeaths, TheCounterOfTheGroupShowsTheKill) {
  launch::MemoryWatch watch(sources());
  set_kills(4);
  const launch::MemoryFindings findings = watch.look();
  EXPECT_EQ(findings.num_kills, 1);
  auto failures = killed_rank(101);
  launch::explain_kills(failures, findings);
  const std::string& meaning = failures[0].meaning;
  EXPECT_TRUE(contains(meaning, "killed by the kernel's out-of-memory killer"))
      << meaning;
  EXPECT_TRUE(contains(meaning, "control group: 1.0 GiB")) << meaning;
  EXPECT_TRUE(contains(meaning, "memory.events counts 1 killed process since"))
      << meaning;
  EXPECT_TRUE(contains(meaning, "use a smaller batch")) << meaning;
  EXPECT_FALSE(contains(meaning, "suspect")) << meaning;
}

TEST_F(MemoryDeaths, AnUnchangedCounterClearsTheKernel) {
  launch::MemoryWatch watch(sources());
  auto failures = killed_rank(101);
  launch::explain_kills(failures, watch.look());
  EXPECT_TRUE(
      contains(failures[0].meaning, "not by the kernel's out-of-memory killer"))
      << failures[0].meaning;
}

TEST_F(MemoryDeaths, TheKernelsLogNamesTheProcessAndItsSize) {
  log("6,2,2,-;" + std::string("Out of memory: Killed process 102 (old)"));
  launch::MemoryWatch watch(sources());
  log(kKernelLine);
  set_kills(4);
  const launch::MemoryFindings findings = watch.look();
  ASSERT_EQ(findings.kernel_kills.size(), 1U) << "older lines do not count";
  auto failures = killed_rank(101);
  launch::explain_kills(failures, findings);
  EXPECT_TRUE(contains(failures[0].meaning,
                       "out-of-memory killer with 1.0 GiB resident: its "
                       "control group reached its memory limit of 1.0 GiB; "))
      << failures[0].meaning;
}

TEST_F(MemoryDeaths, WithoutCounterAndLogTheUsualMeaningStays) {
  const TempDir nothing;
  launch::MemoryWatch watch({.cgroup = {.membership = nothing.path() / "a",
                                        .root = nothing.path() / "b"},
                             .kernel_log = nothing.path() / "c"});
  auto failures = killed_rank(101);
  launch::explain_kills(failures, watch.look());
  EXPECT_EQ(failures[0].meaning, "");
}

TEST_F(MemoryDeaths, OnlyDeathsBySigkillAreExplained) {
  launch::MemoryWatch watch(sources());
  set_kills(4);
  auto failures = killed_rank(101);
  failures[0].exit_code = -SIGSEGV;
  const launch::MemoryFindings findings = watch.look();
  launch::explain_kills(failures, findings);
  EXPECT_EQ(failures[0].meaning, "");
  EXPECT_TRUE(contains(launch::other_kills_text(failures, findings),
                       "ended 1 process of this control group"))
      << "a helper process of a rank";
  EXPECT_EQ(launch::other_kills_text(killed_rank(101), findings), "");
}

TEST(KernelKill, IsParsedFromTheKernelsLine) {
  const auto kill = launch::parse_kernel_kill(kKernelLine);
  ASSERT_TRUE(kill);
  EXPECT_EQ(kill->pid, 101);
  EXPECT_EQ(kill->resident_bytes, int64_t{1} << 30);
  EXPECT_TRUE(kill->is_cgroup_limit);
  EXPECT_FALSE(launch::parse_kernel_kill("Out of memory: Killed process 5 (a) "
                                         "total-vm:1kB, anon-rss:4kB")
                   ->is_cgroup_limit);
  EXPECT_FALSE(launch::parse_kernel_kill("usb 1-1: new device"));
}

}  // namespace
}  // namespace lockstep

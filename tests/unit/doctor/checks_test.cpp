// What the doctor makes of facts that one machine cannot have all.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "lockstep/doctor/disk_checks.h"
#include "lockstep/doctor/finding.h"
#include "lockstep/doctor/gpu_checks.h"
#include "lockstep/doctor/limit_checks.h"
#include "lockstep/doctor/network_checks.h"
#include "lockstep/doctor/recipe_findings.h"
#include "support/messages.h"
#include "support/temp_dir.h"

namespace lockstep::doctor {
namespace {

using testing::expect_in;

GpuFacts machine(int gpus) {
  GpuFacts facts{.has_driver = true,
                 .has_nvml = true,
                 .driver_version = "580.82.07",
                 .driver_cuda = 13000,
                 .nodes = gpus,
                 .known = gpus};
  for (int i = 0; i < gpus; ++i) {
    facts.visible.names.push_back(std::to_string(i));
    facts.bus.push_back("0000:0" + std::to_string(i) + ":00.0");
  }
  facts.visible.installed = gpus;
  return facts;
}

void expect_failure(const Finding& finding, int code, const std::string& text,
                    const std::string& mend) {
  EXPECT_EQ(finding.level, Level::kFailure) << finding_line(finding);
  EXPECT_EQ(exit_code_of(std::vector{finding}), code);
  expect_in(finding_line(finding), text);
  expect_in(finding_line(finding), "; mend: ");
  expect_in(finding.mend, mend);
}

TEST(DoctorGpus, MoreProcessesThanGpusFail) {
  expect_failure(check_gpu_count(machine(2), {.num_processes = 4}), 2,
                 "2 GPUs visible for 4 processes", "--nproc 2");
  EXPECT_EQ(
      check_gpu_count(machine(2), {.num_processes = 4, .shares_gpus = true})
          .level,
      Level::kOk);
  EXPECT_EQ(
      check_gpu_count(machine(2), {.num_processes = 4, .wants_cpus = true})
          .level,
      Level::kOk);
}

TEST(DoctorGpus, IdleGpusAreAWarning) {
  const Finding finding = check_gpu_count(machine(8), {.num_processes = 2});
  EXPECT_EQ(finding.level, Level::kWarning);
  expect_in(finding_line(finding), "6 stay idle; mend: --nproc 8");
}

TEST(DoctorGpus, HiddenOnesFail) {
  GpuFacts facts = machine(2);
  facts.visible.names.clear();
  facts.visible.setting = "7";
  expect_failure(check_gpu_count(facts, {}), 2, "CUDA_VISIBLE_DEVICES=7",
                 "unset CUDA_VISIBLE_DEVICES");
}

TEST(DoctorGpus, ADriverTooOldForCuda13Fails) {
  GpuFacts facts = machine(1);
  facts.driver_version = "535.54";
  facts.driver_cuda = 12020;
  expect_failure(check_driver(facts, {.torch_cuda = 13000}), 7,
                 "driver 535.54 runs CUDA up to 12.2, torch here is built for "
                 "CUDA 13.0: the driver is too old",
                 "driver 580 or later");
  EXPECT_EQ(check_driver(machine(1), {.torch_cuda = 13000}).level, Level::kOk);
}

TEST(DoctorGpus, ALibraryThatDoesNotFitTheKernelModuleFails) {
  GpuFacts facts = machine(1);
  facts.has_nvml = false;
  expect_failure(check_driver(facts, {}), 7, "NVML does not answer", "reboot");
}

TEST(DoctorGpus, DroppedOnesFail) {
  GpuFacts facts = machine(8);
  facts.known = 7;
  expect_failure(*check_dropped_gpus(facts), 7,
                 "the driver shows 7 of 8 GPUs with a device file", "xid");
  // A container with one of eight.
  GpuFacts container = machine(8);
  container.nodes = container.known = 1;
  EXPECT_EQ(check_dropped_gpus(container)->level, Level::kOk);
  EXPECT_EQ(check_dropped_gpus(machine(8))->level, Level::kOk);
  EXPECT_FALSE(check_dropped_gpus(GpuFacts{}));
}

TEST(DoctorGpus, VersionsOfCudaAreNumbers) {
  EXPECT_EQ(cuda_number("13.0"), 13000);
  EXPECT_EQ(cuda_number("12.8"), 12080);
  EXPECT_EQ(cuda_number(""), 0);
}

Limits roomy() {
  return {.shm_total = int64_t{8} << 30,
          .shm_free = int64_t{8} << 30,
          .open_files = 65536,
          .processes = 65536,
          .memory_available = int64_t{64} << 30,
          .cpus = 16};
}

TEST(DoctorLimits, EnoughIsOk) {
  const JobSize job{.num_processes = 4, .workers = 2};
  for (const Finding& finding :
       {check_shared_memory(roomy(), job), check_open_files(roomy(), job),
        check_processes(roomy(), job), check_memory(roomy(), job),
        check_cpus(roomy(), job)}) {
    EXPECT_EQ(finding.level, Level::kOk) << finding_line(finding);
    EXPECT_EQ(finding.mend, "");
  }
}

TEST(DoctorLimits, EachFailsByItself) {
  const JobSize job{.num_processes = 4, .workers = 2};
  Limits limits = roomy();
  limits.shm_total = limits.shm_free = 1 << 20;
  expect_failure(check_shared_memory(limits, job), 9, "/dev/shm has 1.0 MiB",
                 "--shm-size");
  limits.open_files = 64;
  expect_failure(check_open_files(limits, job), 9, "at most 64 per process",
                 "ulimit -n");
  limits.processes = 100;
  limits.used_processes = 50;
  expect_failure(check_processes(limits, job), 9, "50 of 100", "ulimit -u");
  limits.memory_limit = int64_t{1} << 30;
  expect_failure(check_memory(limits, job), 9,
                 "left of the control group's limit of 1.0 GiB", "--memory");
  limits = roomy();
  limits.address_space = 1 << 20;
  expect_failure(check_memory(limits, job), 9, "ulimit -v", "ulimit -v");
}

TEST(DoctorLimits, LoaderThreadsAreComparedWithTheQuota) {
  Limits limits = roomy();
  limits.cpus = 4;
  limits.has_cpu_quota = true;
  const Finding many = check_cpus(limits, {.num_processes = 2, .workers = 16});
  EXPECT_EQ(many.level, Level::kWarning);
  expect_in(finding_line(many), "4 CPUs by quota for 2 processes with 16");
  EXPECT_EQ(many.mend, "--workers 1");
  EXPECT_EQ(check_cpus(limits, {.num_processes = 8}).mend, "--nproc 4");
}

TEST(DoctorLimits, QuotasOfBothVersionsAreRead) {
  const testing::TempDir folder;
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder.path() / path).parent_path());
    std::ofstream(folder.path() / path) << text;
  };
  write("two", "0::/job\n");
  write("cgroup2/job/cpu.max", "150000 100000\n");
  write("cgroup2/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(folder.path() / "two", folder.path() / "cgroup2"), 1.5);
  write("one", "3:cpuset:/\n2:cpu,cpuacct:/job\n");
  write("cgroup1/cpu/job/cpu.cfs_quota_us", "50000\n");
  write("cgroup1/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(folder.path() / "one", folder.path() / "cgroup1"), 0.5);
  EXPECT_FALSE(cpu_quota(folder.path() / "none", folder.path() / "cgroup1"));
}

TEST(DoctorLimits, LoadersAndWhatWasMeasuredCountAsMemory) {
  Limits limits = roomy();
  limits.memory_available = int64_t{2} << 30;
  const JobSize few{.num_processes = 2, .workers = 0};
  EXPECT_EQ(check_memory(limits, few).level, Level::kOk);
  expect_failure(check_memory(limits, {.num_processes = 2, .workers = 64}), 9,
                 "2.0 GiB available, about 5.0 GiB needed by 2 processes",
                 "fewer --workers");
  // A measurement holds the loaders.
  JobSize measured{.num_processes = 2, .workers = 64};
  measured.peak_bytes = int64_t{600} << 20;
  EXPECT_EQ(check_memory(limits, measured).level, Level::kOk);
  measured.peak_bytes = int64_t{3} << 30;
  expect_failure(check_memory(limits, measured), 9, "about 6.0 GiB needed",
                 "fewer processes");
}

TEST(DoctorLimits, TheGroupThatLeavesLeastCounts) {
  const testing::TempDir folder;
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder.path() / path).parent_path());
    std::ofstream(folder.path() / path) << text;
  };
  const auto room = [&](std::optional<int64_t> user_limit) {
    return process_room(folder.path() / "membership", folder.path() / "root",
                        user_limit);
  };
  write("membership", "0::/above/job\n");
  write("root/above/pids.max", "1000\n");
  write("root/above/pids.current", "990\n");
  write("root/above/job/pids.max", "100\n");
  write("root/above/job/pids.current", "20\n");
  EXPECT_EQ(room(4096).limit, 1000);
  EXPECT_EQ(room(4096).used, 990);
  EXPECT_EQ(room(25).limit, 25);
  EXPECT_EQ(room(25).used, 20);
  // In a container the mount begins at the group itself.
  write("membership", "0::/docker/0123\n");
  write("root/pids.max", "50\n");
  write("root/pids.current", "7\n");
  EXPECT_EQ(room(std::nullopt).limit, 50);
  EXPECT_EQ(room(std::nullopt).used, 7);
  write("root/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota(folder.path() / "membership", folder.path() / "root"),
            1.5);
}

RecipeMeasurement measured_at(double samples_per_second) {
  return {.batch_size = 32,
          .device = "H200",
          .peak_bytes = int64_t{10} << 30,
          .total_bytes = int64_t{140} << 30,
          .step_ms = 5,
          .samples_per_second = samples_per_second};
}

TEST(DoctorRecipe, AStepThatFillsTheDeviceIsAWarning) {
  RecipeMeasurement measured = measured_at(100);
  EXPECT_EQ(batch_memory_finding(measured).level, Level::kOk);
  measured.peak_bytes = int64_t{130} << 30;
  const Finding finding = batch_memory_finding(measured);
  EXPECT_EQ(finding.level, Level::kWarning);
  expect_in(finding.text,
            "a batch of 32 per process takes 130.0 GiB of 140.0 GiB on H200");
  expect_in(finding.mend, "a smaller --batch_size");
}

TEST(DoctorRecipe, LittleSpeedUpIsAWarningWithItsCause) {
  SpeedPair pair{.alone = measured_at(100),
                 .together = measured_at(190),
                 .num_processes = 2,
                 .load = 0.3,
                 .cpus = 16};
  const Finding good = speed_finding(pair);
  EXPECT_EQ(good.level, Level::kOk) << finding_line(good);
  expect_in(good.text, "predicted speed-up 1.90");
  pair.together = measured_at(110);
  EXPECT_EQ(speed_finding(pair).level, Level::kWarning);
  expect_in(speed_finding(pair).mend, "--nproc 1");
  pair.together.exchange_part = 0.5;
  expect_in(finding_line(speed_finding(pair)),
            "ranks wait for gradients of others; mend: a larger --batch_size");
  pair.together.data_part = 0.5;
  expect_in(finding_line(speed_finding(pair)),
            "ranks wait for data; mend: more --workers");
  pair.load = 9;
  expect_in(finding_line(speed_finding(pair)),
            "but the machine is busy (load 9.0 on 16 CPUs); mend: run this "
            "command again");
}

TEST(DoctorRecipe, OtherTextIsNoMeasurement) {
  EXPECT_FALSE(parse_measurement(""));
  EXPECT_FALSE(parse_measurement("[1]"));
  EXPECT_FALSE(parse_measurement(R"({"samples": "many"})"));
  const auto measured = parse_measurement(
      R"({"samples": 7, "workers": 3, "parts": {"data": 0.25}})");
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->num_samples, 7);
  EXPECT_EQ(measured->workers, 3);
  EXPECT_EQ(measured->data_part, 0.25);
}

TEST(DoctorNetwork, AnInterfaceThatDoesNotExistFails) {
  const std::vector<Interface> interfaces = {
      {.name = "lo", .address = "127.0.0.1", .is_up = true},
      {.name = "eth0", .address = "10.0.0.7", .is_up = true}};
  expect_failure(
      check_interface(interfaces, {{"GLOO_SOCKET_IFNAME", "ib0"}}, "127.0.0.1"),
      2, "GLOO_SOCKET_IFNAME=ib0: no such network interface",
      "unset GLOO_SOCKET_IFNAME");
  const Finding chosen = check_interface(
      interfaces, {{"NCCL_SOCKET_IFNAME", "=eth0"}}, "10.0.0.7");
  EXPECT_EQ(chosen.level, Level::kOk) << finding_line(chosen);
  expect_in(check_interface(interfaces, {}, "10.0.0.7").text, "on eth0");
}

TEST(DoctorDisk, LeavesNothingBehindAndMeasures) {
  const testing::TempDir folder;
  const auto findings = check_disk(
      {.folder = folder.path() / "not" / "there", .checkpoint_bytes = 1 << 20});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].level, Level::kOk) << finding_line(findings[0]);
  expect_in(findings[1].text, "/s written; a checkpoint of about 1.0 MiB");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(DoctorDisk, ACheckpointThatDoesNotFitFails) {
  const testing::TempDir folder;
  const auto findings = check_disk(
      {.folder = folder.path(), .checkpoint_bytes = int64_t{1} << 50});
  expect_failure(findings.at(1), 3, "the disk is full", "df -h");
}

TEST(DoctorFindings, TheFirstFailureDecidesTheCode) {
  const std::vector<Finding> findings = {
      {.check = "a", .level = Level::kWarning, .kind = Class::kFiles},
      {.check = "b", .level = Level::kFailure, .kind = Class::kHang},
      {.check = "c", .level = Level::kFailure, .kind = Class::kDevice}};
  EXPECT_EQ(exit_code_of(findings), 6);
  EXPECT_EQ(exit_code_of(std::vector{findings[0]}), 0);
  EXPECT_EQ(summary_text(findings), "3 checks: 0 ok, 1 warnings, 2 failures\n");
  expect_in(findings_json(findings),
            "{\"exit_code\":6,\"checks\":[{\"check\":"
            "\"a\",\"level\":\"warning\"");
}

}  // namespace
}  // namespace lockstep::doctor

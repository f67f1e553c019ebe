// Limits of this machine, its container or this shell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "lockstep/doctor/finding.h"

namespace lockstep::doctor {

// What a job needs of the machine.
struct JobSize {
  int num_processes = 1;
  int64_t workers = 2;  // Loader threads per process; most recipes' default.
  bool uses_gpus = false;
  int64_t peak_bytes = 0;  // Per process, where it was measured.
};

struct Limits {
  int64_t shm_total = 0;  // /dev/shm; 0: there is none.
  int64_t shm_free = 0;
  std::optional<int64_t> open_files = {};  // No value: unlimited.
  std::optional<int64_t> processes = {};   // By ulimit -u or pids.max.
  int64_t used_processes = 0;              // By this user or control group.
  int64_t memory_available = 0;            // On the machine.
  // The control group, or the one above it, with the least left.
  std::optional<int64_t> memory_limit = {};
  int64_t memory_used = 0;
  std::optional<int64_t> address_space = {};  // ulimit -v, per process.
  double cpus = 1;  // By affinity and the control group's quota.
  bool has_cpu_quota = false;
};

Limits read_limits();

// The quota of a control group in CPUs, of either version: "150000 100000" of
// cpu.max, or both numbers of version 1; no value: unlimited.
std::optional<double> cpu_quota(const std::filesystem::path& membership,
                                const std::filesystem::path& root);

struct ProcessRoom {
  std::optional<int64_t> limit = {};  // No value: unlimited.
  int64_t used = 0;
};
// Among a user's limit and those of the control group and its parents, the
// one that leaves least.
ProcessRoom process_room(const std::filesystem::path& membership,
                         const std::filesystem::path& root,
                         std::optional<int64_t> user_limit);

Finding check_shared_memory(const Limits& limits, const JobSize& job);
Finding check_open_files(const Limits& limits, const JobSize& job);
Finding check_processes(const Limits& limits, const JobSize& job);
Finding check_memory(const Limits& limits, const JobSize& job);
Finding check_cpus(const Limits& limits, const JobSize& job);

}  // namespace lockstep::doctor

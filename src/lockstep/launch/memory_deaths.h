// Whether the kernel killed a worker for lack of memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/memory_cgroup.h"
#include "lockstep/launch/failure_report.h"

namespace lockstep::launch {

// A process that was killed according to the kernel's log.
struct KernelKill {
  pid_t pid = 0;
  int64_t resident_bytes = 0;
  bool is_cgroup_limit = false;  // Else the machine had no memory left.
};

struct MemoryFindings {
  // Kills in this control group since the watch began; no value where the
  // kernel does not count them.
  std::optional<int64_t> num_kills;
  std::filesystem::path counter;
  std::optional<int64_t> limit_bytes;  // The control group's.
  std::vector<KernelKill> kernel_kills;
};

struct MemorySources {
  base::CgroupFiles cgroup = {};
  std::filesystem::path kernel_log = "/dev/kmsg";
};

// Counts from its construction on. Where counter or log cannot be read it
// finds nothing.
class MemoryWatch {
 public:
  explicit MemoryWatch(const MemorySources& sources = {});

  MemoryFindings look();

 private:
  base::MemoryCgroup cgroup_;
  std::optional<int64_t> num_kills_before_;
  base::FileDescriptor kernel_log_;
  std::vector<KernelKill> kernel_kills_;
};

// Parses a line of the kernel's log; no value for other lines.
std::optional<KernelKill> parse_kernel_kill(const std::string& line);

// Sets Failure::meaning of every worker that died by SIGKILL: whether the
// out-of-memory killer did it.
void explain_kills(std::span<Failure> failures, const MemoryFindings& findings);

// A line for the report when a process of the job was killed that is not among
// the failures; else empty.
std::string other_kills_text(std::span<const Failure> failures,
                             const MemoryFindings& findings);

}  // namespace lockstep::launch

// The memory limit that the kernel puts on this process's control group, and
// how many processes it has killed there for lack of memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace lockstep::base {

// Where the kernel shows it; tests pass other folders.
struct CgroupFiles {
  std::filesystem::path membership = "/proc/self/cgroup";
  std::filesystem::path root = "/sys/fs/cgroup";
};

// A limit, and what counts against it less what the kernel can take back.
struct MemoryRoom {
  int64_t limit_bytes = 0;
  int64_t used_bytes = 0;

  int64_t left_bytes() const { return limit_bytes - used_bytes; }
};

// Version 1 and 2 of cgroups.
class MemoryCgroup {
 public:
  explicit MemoryCgroup(const CgroupFiles& files = {});

  // The file with the number of killed processes.
  const std::filesystem::path& counter() const { return counter_; }
  // Processes of the group that the out-of-memory killer ended since the group
  // exists; no value where the kernel does not show it.
  std::optional<int64_t> num_oom_kills() const;
  // The lowest limit of the group and those above it; no value without one.
  std::optional<int64_t> limit_bytes() const;
  // The group, or one above it, with the least left, which need not
  // have the lowest limit: others share it. No value without a limit.
  std::optional<MemoryRoom> tightest_room() const;

 private:
  std::filesystem::path root_;  // Hierarchy with the memory controller.
  std::filesystem::path folder_;
  std::filesystem::path counter_;
};

}  // namespace lockstep::base

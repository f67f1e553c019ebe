// A control group with a memory limit, for one test.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::testing {

// A control group below this process's own one, with a limit.
class LimitedGroup {
 public:
  explicit LimitedGroup(int64_t bytes) {
    for (const std::string& line :
         base::split(base::read_file("/proc/self/cgroup"), '\n')) {
      const auto at = line.find(":memory:");
      const bool is_version2 = line.starts_with("0::");
      if (at == std::string::npos && (!is_version2 || !folder_.empty())) {
        continue;
      }
      const std::filesystem::path root =
          is_version2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
      const std::string own = line.substr(line.rfind(':') + 1);
      folder_ = root / std::filesystem::path(own).relative_path() /
                ("lockstep-test-" + std::to_string(getpid()));
      limit_ = is_version2 ? "memory.max" : "memory.limit_in_bytes";
    }
    is_ready_ = mkdir(folder_.c_str(), 0755) == 0 && write(limit_, bytes);
  }
  ~LimitedGroup() { rmdir(folder_.c_str()); }
  LimitedGroup(const LimitedGroup&) = delete;
  LimitedGroup& operator=(const LimitedGroup&) = delete;

  bool is_ready() const { return is_ready_; }
  std::string processes() const { return (folder_ / "cgroup.procs").string(); }

 private:
  bool write(const std::string& name, int64_t value) const {
    std::ofstream file(folder_ / name);
    file << value;
    return static_cast<bool>(file.flush());
  }

  std::filesystem::path folder_;
  std::string limit_;
  bool is_ready_ = false;
};

}  // namespace lockstep::testing

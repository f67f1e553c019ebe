#include "lockstep/runs/lock_table.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::runs {

LockTable LockTable::of_machine() {
  return LockTable(base::try_read_file("/proc/locks").value_or(""));
}

// "3: FLOCK  ADVISORY  WRITE 4711 fe:01:393241 0 EOF"
LockTable::LockTable(std::string_view text) {
  for (const std::string& line : base::split(text, '\n')) {
    if (line.find("FLOCK") == std::string::npos) continue;
    int pid = 0;
    unsigned major_part = 0;
    unsigned minor_part = 0;
    unsigned long long inode = 0;
    if (std::sscanf(line.c_str(), "%*u: FLOCK %*s WRITE %d %x:%x:%llu", &pid,
                    &major_part, &minor_part, &inode) == 4) {
      locks_.insert({.device = makedev(major_part, minor_part),
                     .inode = inode,
                     .pid = pid});
    }
  }
}

bool LockTable::is_locked(const FileFacts& file, int pid) const {
  return std::any_of(locks_.begin(), locks_.end(), [&](const Lock& lock) {
    return lock.inode == file.inode &&
           (lock.device == file.device || lock.pid == pid);
  });
}

}  // namespace lockstep::runs

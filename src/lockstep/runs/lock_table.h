// Which files of this machine are locked, without locking any: a lock taken
// only to look would refuse a training that starts at that moment.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "lockstep/runs/folder_tree.h"

namespace lockstep::runs {

class LockTable {
 public:
  // The kernel's list (/proc/locks).
  static LockTable of_machine();
  explicit LockTable(std::string_view text);

  // `pid`: the process that says it holds the lock. File systems that show
  // files under another device than their locks are told by it.
  bool is_locked(const FileFacts& file, int pid) const;

 private:
  struct Lock {
    uint64_t device = 0;
    uint64_t inode = 0;
    int pid = 0;
    auto operator<=>(const Lock&) const = default;
  };
  std::set<Lock> locks_ = {};
};

}  // namespace lockstep::runs

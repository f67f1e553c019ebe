#include "lockstep/comm/machines.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::comm {

std::string boot_id() {
  const auto id = base::try_read_file("/proc/sys/kernel/random/boot_id");
  if (!id) throw IoError("cannot read /proc/sys/kernel/random/boot_id");
  return std::string(base::trim(*id));
}

std::string machine_name(const base::Environment& environment) {
  if (const auto id = base::find(environment, "NCCL_HOSTID")) return *id;
  struct stat network{};
  if (stat("/proc/self/ns/net", &network) != 0) network.st_ino = 0;
  return boot_id() + "/" + std::to_string(network.st_ino);
}

Machines::Machines(const std::vector<std::string>& names) {
  std::map<std::string, int> known;
  for (const std::string& name : names) {
    const auto [entry, is_new] = known.emplace(name, count());
    if (is_new) ranks_.emplace_back();
    ranks_[entry->second].push_back(static_cast<int>(machine_of_.size()));
    machine_of_.push_back(entry->second);
  }
}

int Machines::local_rank(int rank) const {
  const auto& ranks = ranks_of(machine_of(rank));
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) -
                          ranks.begin());
}

}  // namespace lockstep::comm

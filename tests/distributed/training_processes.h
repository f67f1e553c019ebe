// Processes of a training that runs, as /proc shows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/process.h"

namespace lockstep::testing {

struct RankProcess {
  pid_t pid = 0;
  int64_t started = 0;  // In clock ticks since the machine's start.
};

// Fields of /proc/PID/stat from the third on, the state; "Z" alone for a
// process that is gone.
std::vector<std::string> stat_fields(pid_t pid);

// The words of its command line.
std::vector<std::string> command_line(pid_t pid);

std::vector<RankProcess> ranks_of(const Process& process);

// Those that wait to become a rank; not those that still load.
std::vector<pid_t> waiting_spares_of(const Process& process);
// All of them.
std::vector<pid_t> spares_of(const Process& process);

}  // namespace lockstep::testing

// Processes from /proc, and ending all processes below this one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep::launch {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';  // R, S, D, T (stopped), Z ...
  std::string command;
};

// No value when the process does not exist.
std::optional<ProcessInfo> find_process(pid_t pid);

// All processes below `root`, children before grandchildren; dead ones that
// nobody waited for are left out.
std::vector<ProcessInfo> find_descendants(pid_t root);

// Sends the signal to every descendant of this process; returns how many
// there are.
int signal_descendants(int signal);

// How long the kernel may take to end a killed process.
constexpr double kKillSeconds = 10;

// SIGKILL to all descendants until none is left; also ends those that appear
// during the call. The caller is a subreaper, so that orphans come to it.
// Returns the processes that the kernel does not let go within the time.
std::vector<ProcessInfo> kill_descendants(double seconds);

// "sleeping", "stopped" ... for a state letter.
std::string state_name(char state);

}  // namespace lockstep::launch

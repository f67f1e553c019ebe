#include "lockstep/launch/processes.h"

#include <dirent.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <map>
#include <memory>

#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

// Fields of /proc/PID/stat; the command sits in parentheses and may itself
// hold spaces and parentheses.
std::optional<ProcessInfo> parse_stat(pid_t pid, const std::string& stat) {
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos ||
      close + 2 >= stat.size()) {
    return std::nullopt;
  }
  const auto fields = base::split(stat.substr(close + 2), ' ');
  if (fields.size() < 2 || fields[0].empty()) return std::nullopt;
  return ProcessInfo{
      .pid = pid,
      .parent = static_cast<pid_t>(base::parse_integer(fields[1]).value_or(0)),
      .state = fields[0][0],
      .command = stat.substr(open + 1, close - open - 1)};
}

std::multimap<pid_t, ProcessInfo> processes_by_parent() {
  std::multimap<pid_t, ProcessInfo> result;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (folder == nullptr) return result;
  while (const dirent* entry = readdir(folder.get())) {
    const auto pid = base::parse_integer(entry->d_name);
    if (!pid) continue;
    if (auto info = find_process(static_cast<pid_t>(*pid))) {
      result.emplace(info->parent, *std::move(info));
    }
  }
  return result;
}

// True when this process has no child any more.
bool reap_all() {
  pid_t pid = 0;
  do {
    pid = waitpid(-1, nullptr, WNOHANG);
  } while (pid > 0);
  return pid < 0 && errno == ECHILD;
}

}  // namespace

std::optional<ProcessInfo> find_process(pid_t pid) {
  const auto stat =
      base::try_read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return std::nullopt;
  return parse_stat(pid, *stat);
}

std::vector<ProcessInfo> find_descendants(pid_t root) {
  const auto by_parent = processes_by_parent();
  std::vector<ProcessInfo> found;
  std::vector<pid_t> parents = {root};
  for (size_t i = 0; i < parents.size(); ++i) {
    const auto [first, last] = by_parent.equal_range(parents[i]);
    for (auto child = first; child != last; ++child) {
      parents.push_back(child->second.pid);
      if (child->second.state == 'Z' || child->second.state == 'X') continue;
      found.push_back(child->second);
    }
  }
  return found;
}

int signal_descendants(int signal) {
  const auto found = find_descendants(getpid());
  for (const ProcessInfo& process : found) kill(process.pid, signal);
  return static_cast<int>(found.size());
}

std::vector<ProcessInfo> kill_descendants(double seconds) {
  const int64_t begin = base::monotonic_ns();
  while (!reap_all()) {
    signal_descendants(SIGKILL);
    if (base::seconds_between(begin, base::monotonic_ns()) > seconds) {
      return find_descendants(getpid());
    }
    // SIGCHLD is blocked here, so that this waits for a death, not for time;
    // the limit is for a grandchild that its own parent reaps.
    sigset_t child_ended;
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    const timespec limit{.tv_sec = 0, .tv_nsec = 20'000'000};
    sigtimedwait(&child_ended, nullptr, &limit);
  }
  return {};
}

std::string state_name(char state) {
  switch (state) {
    case 'R': return "running";
    case 'S': return "sleeping";
    case 'D': return "waiting for a disk or device";
    case 'T': return "stopped";
    case 't': return "stopped by a debugger";
    case 'Z': return "dead";
    default: return "unknown";
  }
}

}  // namespace lockstep::launch

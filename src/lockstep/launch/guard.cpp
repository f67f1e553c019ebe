#include "lockstep/launch/guard.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "lockstep/base/files.h"
#include "lockstep/base/signals.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/processes.h"

namespace lockstep::launch {
namespace {

constexpr const char* kGuardName = "job-guard";

// The words that /proc/PID/cmdline shows lie in this process's own memory;
// /proc/self/stat shows where (fields 48 and 49 of proc(5)).
void replace_command_line(const std::string& title) {
  const auto stat = base::try_read_file("/proc/self/stat");
  if (!stat) return;
  const auto fields = base::split(stat->substr(stat->rfind(')') + 2), ' ');
  constexpr size_t kBegin = 48 - 3;  // The first field here is the third.
  if (fields.size() <= kBegin + 1) return;
  const auto begin = base::parse_integer(fields[kBegin]).value_or(0);
  const auto end = base::parse_integer(fields[kBegin + 1]).value_or(0);
  const int64_t bytes = end - begin;
  if (begin <= 0 || bytes <= static_cast<int64_t>(title.size())) return;
  char* words = reinterpret_cast<char*>(begin);
  std::memset(words, 0, static_cast<size_t>(bytes));
  std::memcpy(words, title.data(), title.size());
}

std::string files_text(const LogFolder& logs) {
  std::error_code error;
  if (!std::filesystem::exists(logs.path(), error)) return "";
  return "; log and error files are in " + logs.path().string();
}

int end_without_keeper(int wait_status, const LogFolder& logs) {
  kill_descendants(kKillSeconds);
  logs.clean(LogFolder::Errors::kKeep);
  base::write_all(
      STDERR_FILENO,
      fmt::format("lockstep: the keeper process was killed by {}; all "
                  "processes of the job were ended{}\n",
                  base::signal_name(WTERMSIG(wait_status)), files_text(logs)));
  return 1;
}

int end_without_front(const LogFolder& logs) {
  kill_descendants(kKillSeconds);
  logs.clean(LogFolder::Errors::kKeep);
  return 1;
}

}  // namespace

int guard_keeper(pid_t keeper, int control_fd, const LogFolder& logs) {
  prctl(PR_SET_NAME, kGuardName);
  replace_command_line(kGuardName);
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  const base::FileDescriptor events(
      signalfd(-1, &child_ended, SFD_NONBLOCK | SFD_CLOEXEC));
  while (true) {
    int status = 0;
    if (waitpid(keeper, &status, WNOHANG) == keeper) {
      if (!WIFEXITED(status)) return end_without_keeper(status, logs);
      const int code = WEXITSTATUS(status);
      logs.clean(code == 0 ? LogFolder::Errors::kRemove
                           : LogFolder::Errors::kKeep);
      return code;
    }
    // No event is asked for: a pipe without writers reports itself.
    pollfd entries[] = {{.fd = control_fd, .events = 0, .revents = 0},
                        {.fd = events.get(), .events = POLLIN, .revents = 0}};
    poll(entries, 2, events ? -1 : 100);
    if ((entries[0].revents & (POLLHUP | POLLERR)) != 0) {
      return end_without_front(logs);
    }
    signalfd_siginfo ignored;
    while (read(events.get(), &ignored, sizeof(ignored)) > 0) {
    }
  }
}

}  // namespace lockstep::launch

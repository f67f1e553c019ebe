#include "lockstep/doctor/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>

#include "lockstep/base/clock.h"
#include "lockstep/base/exec_arrays.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/doctor/held_signals.h"
#include "lockstep/error.h"
#include "lockstep/launch/processes.h"

namespace lockstep::doctor {
namespace {

namespace fs = std::filesystem;

constexpr double kGraceSeconds = 5;    // Between SIGTERM and SIGKILL.
constexpr int kLookMilliseconds = 10;  // Between looks at killed processes.

// A temporary folder, removed with all that is in it.
class ProbeFolder {
 public:
  ProbeFolder() {
    std::error_code error;
    const fs::path place = fs::temp_directory_path(error);
    path_ = base::make_unique_folder(error ? fs::path("/tmp") : place,
                                     "lockstep_doctor_");
  }
  ~ProbeFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ProbeFolder(const ProbeFolder&) = delete;
  ProbeFolder& operator=(const ProbeFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

pid_t start(const std::vector<std::string>& command,
            const base::Environment& environment, const fs::path& folder,
            const sigset_t& mask) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO,
                                   (folder / "out").c_str(), kFlags, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO,
                                   (folder / "err").c_str(), kFlags, 0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const std::vector<std::string> entries = base::entries_of(environment);
  std::vector<char*> arguments = base::pointers_to(command);
  std::vector<char*> variables = base::pointers_to(entries);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, command[0].c_str(), &actions, &attributes,
                                arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    errno = error;
    throw IoError("cannot start " + command[0] + ": " + base::errno_text());
  }
  return pid;
}

// True when the process has ended; false at the deadline or after a signal.
bool wait_for_end(int process, const HeldSignals& signals, double seconds) {
  const int64_t begin = base::monotonic_ns();
  for (;;) {
    const double left =
        seconds - base::seconds_between(begin, base::monotonic_ns());
    pollfd entries[] = {{process, POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    const int ready =
        poll(entries, 2, static_cast<int>(std::max(0.0, left) * 1000) + 1);
    if (ready > 0 && entries[0].revents != 0) return true;
    if (ready > 0 && entries[1].revents != 0) return false;
    if (left <= 0) return false;
  }
}

// All processes that one measurement started. Orphans among them come to this
// process: the workers of a launcher that was killed would otherwise still
// write while their folder is removed. Children from before, of a shell that
// became this program, are left alone.
class ProbeFamily {
 public:
  ProbeFamily() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (const launch::ProcessInfo& process : below_this_one()) {
      before_.insert(process.pid);
    }
  }

  // SIGKILL to all until none is left; returns those that the kernel does not
  // let go within the time.
  std::vector<launch::ProcessInfo> kill_all(double seconds) const {
    const int64_t begin = base::monotonic_ns();
    for (;;) {
      auto members = find_members();
      if (members.empty()) return {};
      for (const launch::ProcessInfo& process : members) {
        kill(process.pid, SIGKILL);
        waitpid(process.pid, nullptr, WNOHANG);
      }
      if (base::seconds_between(begin, base::monotonic_ns()) > seconds) {
        return members;
      }
      poll(nullptr, 0, kLookMilliseconds);
    }
  }

 private:
  static std::vector<launch::ProcessInfo> below_this_one() {
    return launch::find_descendants(getpid());
  }

  std::vector<launch::ProcessInfo> find_members() const {
    std::set<pid_t> others = before_;
    std::vector<launch::ProcessInfo> members;
    // Parents come before their children.
    for (launch::ProcessInfo& process : below_this_one()) {
      if (others.contains(process.pid) || others.contains(process.parent)) {
        others.insert(process.pid);
      } else {
        members.push_back(std::move(process));
      }
    }
    return members;
  }

  std::set<pid_t> before_ = {};
};

std::string text_of(const std::vector<launch::ProcessInfo>& left) {
  if (left.empty()) return "";
  const launch::ProcessInfo& process = left.front();
  return "process " + std::to_string(process.pid) + " (" + process.command +
         ") cannot be killed: it is " + launch::state_name(process.state);
}

}  // namespace

std::string ProbeResult::last_line(const std::string& mark) const {
  std::string found;
  for (const std::string& line : base::split(out, '\n')) {
    if (line.starts_with(mark)) found = line.substr(mark.size());
  }
  return found;
}

std::string ProbeResult::problem() const {
  std::string text = error ? error->message : "";
  if (text.empty()) {
    for (const std::string& line : base::split(err, '\n')) {
      if (!base::trim(line).empty()) text = line;
    }
  }
  text = std::string(base::trim(text));
  return text.substr(0, text.find('\n'));
}

ProbeResult run_probe(const std::vector<std::string>& command,
                      base::Environment environment, double limit_seconds) {
  ProbeResult result;
  // Before the folder is made and until it is removed: Ctrl-C leaves nothing.
  const HeldSignals signals;
  const ProbeFolder folder;
  const ProbeFamily family;
  const fs::path error_file = folder.path() / "error.json";
  environment["TMPDIR"] = folder.path().string();
  environment["TORCHELASTIC_ERROR_FILE"] = error_file.string();
  const pid_t pid =
      start(command, environment, folder.path(), signals.mask_of_children());
  const base::FileDescriptor process(
      static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  int signal = 0;
  bool has_ended = wait_for_end(process.get(), signals, limit_seconds);
  if (!has_ended) {
    signal = signals.take();
    result.timed_out = signal == 0;
    kill(pid, SIGTERM);
    has_ended = wait_for_end(process.get(), signals, kGraceSeconds);
  }
  int status = SIGKILL;  // As kill_all() leaves it.
  if (has_ended) waitpid(pid, &status, 0);
  result.unkillable = text_of(family.kill_all(launch::kKillSeconds));
  if (signal != 0) throw Interrupted{signal};
  result.exit_code =
      WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  result.out = base::try_read_file(folder.path() / "out").value_or("");
  result.err = base::try_read_file(folder.path() / "err").value_or("");
  result.error = base::read_error_file(error_file);
  return result;
}

}  // namespace lockstep::doctor

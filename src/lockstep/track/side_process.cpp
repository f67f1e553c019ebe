#include "lockstep/track/side_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include "lockstep/base/exec_arrays.h"
#include "lockstep/base/files.h"
#include "lockstep/base/signal_mask.h"
#include "lockstep/error.h"

namespace lockstep::track {
namespace {

// More than the training's; as `nice` without a number.
constexpr int kNiceness = 10;
constexpr int kCannotExecute = 127;

base::FileDescriptor opened(const std::filesystem::path& path, int flags) {
  base::FileDescriptor file(open(path.c_str(), flags | O_CLOEXEC, 0644));
  if (!file) {
    throw IoError(
        fmt::format("cannot open {}: {}", path.string(), base::errno_text()));
  }
  return file;
}

struct Prepared {
  const char* file;
  char* const* arguments;
  char* const* environment;
  int input;
  int output;
  pid_t parent;
};

void become_first_victim_of_the_oom_killer() {
  constexpr std::string_view kMost = "1000";
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t written [[maybe_unused]] =
      write(file, kMost.data(), kMost.size());
  close(file);
}

// Runs in the memory of the parent: system calls only.
[[noreturn]] void become_program(const Prepared& prepared) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != prepared.parent) _exit(kCannotExecute);
  dup2(prepared.input, STDIN_FILENO);
  dup2(prepared.output, STDOUT_FILENO);
  dup2(prepared.output, STDERR_FILENO);
  // A socket of a rank that stayed open here would hide the rank's death from
  // its peers.
  closefrom(STDERR_FILENO + 1);
  [[maybe_unused]] const int niceness = nice(kNiceness);
  become_first_victim_of_the_oom_killer();
  // Handlers of the parent must not run in the shared memory.
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(prepared.file, prepared.arguments, prepared.environment);
  _exit(kCannotExecute);
}

}  // namespace

SideProcess::SideProcess(const SideProgram& program) {
  const auto arguments = base::pointers_to(program.arguments);
  const auto entries = base::entries_of(program.environment);
  const auto environment = base::pointers_to(entries);
  const auto input = opened("/dev/null", O_RDONLY);
  const auto output = opened(program.output, O_WRONLY | O_CREAT | O_APPEND);
  const Prepared prepared{.file = program.file.c_str(),
                          .arguments = arguments.data(),
                          .environment = environment.data(),
                          .input = input.get(),
                          .output = output.get(),
                          .parent = getpid()};
  const base::AllSignalsBlocked until_executed;
  // fork() would copy the page tables of a training, which may have hundreds of
  // gigabytes, while its threads wait; posix_spawn() cannot set what ends the
  // process together with this one. The child makes system calls only.
  // NOLINTNEXTLINE(*vfork,bugprone-unsafe-functions)
  const pid_t pid = vfork();
  if (pid == 0) become_program(prepared);  // NOLINT(clang-analyzer-unix.Vfork)
  if (pid < 0) {
    throw IoError(fmt::format("cannot start {}: {}", program.file.string(),
                              base::errno_text()));
  }
  pid_ = pid;
}

SideProcess::~SideProcess() {
  if (end()) return;
  // Its session may not exist yet.
  if (kill(-pid_, SIGKILL) != 0) kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<int> SideProcess::end() {
  if (end_) return end_;
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, WNOHANG);
  if (ended == pid_) {
    end_ = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  } else if (ended < 0 && errno == ECHILD) {
    end_ = 0;  // Somebody else has waited for it.
  }
  return end_;
}

}  // namespace lockstep::track

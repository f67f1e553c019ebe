#include "lockstep/launch/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lockstep/base/exec_arrays.h"
#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

// A later dup2 must not overwrite a descriptor that is still needed.
void connect(int from, int to) {
  if (from >= 0 && from != to) dup2(from, to);
}

void keep_open(int fd) {
  if (fd >= 0) fcntl(fd, F_SETFD, 0);
}

// Room for the CPUs of the largest Linux machine: 8192.
using CpuMask = std::array<cpu_set_t, 8>;

CpuMask mask_of(const CpuList& cpus) {
  CpuMask mask{};
  for (const int cpu : cpus) CPU_SET_S(cpu, sizeof(mask), mask.data());
  return mask;
}

// Reports to the launcher why this process cannot become a worker: the errno of
// exec, or that of the binding as a negative number.
[[noreturn]] void give_up(int pipe, int number) {
  const ssize_t written [[maybe_unused]] = write(pipe, &number, sizeof(number));
  _exit(127);
}

}  // namespace

bool set_cpus(pid_t pid, const CpuList& cpus) {
  if (cpus.empty()) return true;
  const CpuMask mask = mask_of(cpus);
  return sched_setaffinity(pid, sizeof(mask), mask.data()) == 0;
}

Spawner::Spawner() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw IoError("cannot make a pipe: " + base::errno_text());
  }
  read_end_ = base::FileDescriptor(ends[0]);
  write_end_ = base::FileDescriptor(ends[1]);
}

pid_t Spawner::start(const SpawnRequest& request) {
  const auto arguments = base::pointers_to(request.arguments);
  const auto entries = base::entries_of(request.environment);
  const auto environment = base::pointers_to(entries);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw IoError("cannot start a process: " + base::errno_text());
  if (pid > 0) return pid;

  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // Lets programs that the launcher starts read this one's stack where Yama
  // reserves that for ancestors.
  prctl(PR_SET_PTRACER, static_cast<unsigned long>(parent));
  signal(SIGPIPE, SIG_DFL);
  connect(request.stdout_fd, STDOUT_FILENO);
  connect(request.stderr_fd, STDERR_FILENO);
  for (const auto& [name, fd] : request.kept_fds) keep_open(fd);
  if (!set_cpus(0, request.cpus)) give_up(write_end_.get(), -errno);
  sigprocmask(SIG_SETMASK, &request.signal_mask, nullptr);
  execvpe(request.file.c_str(), arguments.data(), environment.data());
  give_up(write_end_.get(), errno);
}

std::optional<int> Spawner::wait_for_exec() {
  write_end_.reset();
  int number = 0;
  ssize_t count = 0;
  do {
    count = read(read_end_.get(), &number, sizeof(number));
  } while (count < 0 && errno == EINTR);
  if (count != sizeof(number)) return std::nullopt;
  if (number < 0) {
    errno = -number;
    throw IoError("cannot bind a process to its CPUs: " + base::errno_text());
  }
  return number;
}

}  // namespace lockstep::launch

#include "lockstep/launch/front.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/signals.h"
#include "lockstep/launch/control.h"
#include "lockstep/launch/keeper.h"
#include "lockstep/launch/port.h"
#include "lockstep/launch/processes.h"

namespace lockstep {
namespace {

constexpr double kKillSeconds = 10;

bool is_ignored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 &&
         action.sa_handler == SIG_IGN;
}

// The signals that the front takes. SIGHUP stays ignored under nohup.
sigset_t watched_signals(const RunOptions& options) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : options.stop_signals) {
    if (signal == SIGHUP && is_ignored(SIGHUP)) continue;
    sigaddset(&set, signal);
  }
  for (const int signal : {SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&set, signal);
  // A signal that the parent left ignored would never arrive.
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&set, signal) == 1) ::signal(signal, SIG_DFL);
  }
  return set;
}

// A descriptor of the job must not become the console by accident.
void open_missing_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR);
  }
}

// The keeper leaves the terminal's session, so that a signal to the front's
// process group reaches it only through the front.
[[noreturn]] void run_keeper(const Plan& plan,
                             std::optional<PortReservation> port,
                             ControlPipe pipe, const sigset_t& worker_mask) {
  setsid();
  prctl(PR_SET_NAME, "lockstep-keeper");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pipe.write_end.reset();
  ControlReader control(std::move(pipe.read_end));
  _exit(keep_job(plan, std::move(port), control, worker_mask));
}

int end_without_keeper() {
  kill_descendants(kKillSeconds);
  write_all(STDERR_FILENO,
            "lockstep: the keeper process was killed; all processes of the job "
            "were ended\n");
  return 1;
}

// Hands signals on until the keeper ends.
int watch(pid_t keeper, const FileDescriptor& events,
          const FileDescriptor& control) {
  while (true) {
    signalfd_siginfo info{};
    const ssize_t count = read(events.get(), &info, sizeof(info));
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof(info)) return end_without_keeper();
    if (info.ssi_signo != SIGCHLD) {
      send_signal(control, static_cast<int>(info.ssi_signo));
      continue;
    }
    int status = 0;
    if (waitpid(keeper, &status, WNOHANG) != keeper) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : end_without_keeper();
  }
}

}  // namespace

int run_job(const Plan& plan) {
  open_missing_standard_streams();
  std::optional<PortReservation> port;
  if (plan.master_port) port = PortReservation::at(*plan.master_port);
  ControlPipe pipe = make_control_pipe();
  signal(SIGPIPE, SIG_IGN);
  // Log files at their size limit are reported and do not end the keeper. A
  // handler, unlike an ignored signal, does not reach the workers.
  if (!is_ignored(SIGXFSZ)) signal(SIGXFSZ, [](int) {});
  const sigset_t watched = watched_signals(plan.options);
  sigset_t worker_mask;
  sigprocmask(SIG_BLOCK, &watched, &worker_mask);
  if (plan.runs_own_worker) sigaddset(&worker_mask, SIGUSR1);
  const FileDescriptor events(signalfd(-1, &watched, SFD_CLOEXEC));
  if (!events) throw IoError("cannot watch signals: " + errno_text());
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t keeper = fork();
  if (keeper < 0) throw IoError("cannot start a process: " + errno_text());
  if (keeper == 0) {
    run_keeper(plan, std::move(port), std::move(pipe), worker_mask);
  }
  pipe.read_end.reset();
  return watch(keeper, events, pipe.write_end);
}

}  // namespace lockstep

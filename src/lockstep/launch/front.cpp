#include "lockstep/launch/front.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "lockstep/base/signals.h"
#include "lockstep/error.h"
#include "lockstep/launch/control.h"
#include "lockstep/launch/guard.h"
#include "lockstep/launch/job_watch.h"
#include "lockstep/launch/keeper.h"
#include "lockstep/launch/log_folder.h"
#include "lockstep/launch/port.h"

namespace lockstep::launch {
namespace {

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

// What the processes of the job share from the start.
struct JobStart {
  const Plan& plan;
  const LogFolder& logs;
  std::optional<StoreSocket> port;
  ControlPipe control;
  ControlPipe answers;
  sigset_t worker_mask;
};

// Guard and keeper leave the terminal's session, so that a signal to the
// front's process group reaches them only through the front. Where one of the
// two is stopped, the end of the process above it wakes it up.
[[noreturn]] void run_keeper(JobStart& start) {
  setsid();
  prctl(PR_SET_NAME, "lockstep-keeper");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  ControlReader control(std::move(start.control.read_end),
                        std::move(start.answers.write_end));
  const int code = keep_job(start.plan, start.logs, std::move(start.port),
                            control, start.worker_mask);
  kill(getppid(), SIGCONT);
  _exit(code);
}

[[noreturn]] void run_guard(JobStart& start) {
  start.control.write_end.reset();
  start.answers.read_end.reset();
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t keeper = fork();
  if (keeper == 0) run_keeper(start);
  if (keeper < 0) {
    const IoError error("cannot start a process: " + base::errno_text());
    base::write_all(STDERR_FILENO,
                    std::string("lockstep: ") + error.what() + "\n");
    start.logs.clean(LogFolder::Errors::kRemove);
    _exit(exit_code(error));
  }
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  start.port.reset();
  start.answers.write_end.reset();
  _exit(guard_keeper(keeper, start.control.read_end.get(), start.logs));
}

}  // namespace

int run_job(const Plan& plan) {
  open_missing_standard_streams();
  std::optional<StoreSocket> port;
  if (plan.master_port) {
    port = StoreSocket::at(plan.master_addr, *plan.master_port,
                           plan.nodes.num_nodes == 1 ? Reach::kThisMachine
                                                     : Reach::kOtherMachines);
  }
  signal(SIGPIPE, SIG_IGN);
  // Log files at their size limit are reported and do not end the keeper. A
  // handler, unlike an ignored signal, does not reach the workers.
  if (!is_ignored(SIGXFSZ)) signal(SIGXFSZ, [](int) {});
  const sigset_t watched = watched_signals(plan.options);
  sigset_t worker_mask;
  sigprocmask(SIG_BLOCK, &watched, &worker_mask);
  if (plan.runs_own_worker) sigaddset(&worker_mask, SIGUSR1);
  base::FileDescriptor events(signalfd(-1, &watched, SFD_CLOEXEC));
  if (!events) throw IoError("cannot watch signals: " + base::errno_text());
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  ControlPipe control = make_control_pipe();
  ControlPipe answers = make_control_pipe();
  const LogFolder logs(plan.options.log_dir, plan.run_id);
  JobStart start{.plan = plan,
                 .logs = logs,
                 .port = std::move(port),
                 .control = std::move(control),
                 .answers = std::move(answers),
                 .worker_mask = worker_mask};
  const pid_t guard = fork();
  if (guard < 0) {
    const std::string reason = base::errno_text();
    logs.clean(LogFolder::Errors::kRemove);
    throw IoError("cannot start a process: " + reason);
  }
  if (guard == 0) run_guard(start);
  start.port.reset();  // the keeper has it
  start.control.read_end.reset();
  start.answers.write_end.reset();
  return JobWatch({.guard = guard,
                   .signals = std::move(events),
                   .control = std::move(start.control.write_end),
                   .answers = std::move(start.answers.read_end)},
                  plan.options, logs)
      .run();
}

}  // namespace lockstep::launch

#include "lockstep/launch/keeper.h"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/base/error.h"
#include "lockstep/base/error_file.h"
#include "lockstep/base/signals.h"
#include "lockstep/base/terminal.h"
#include "lockstep/launch/attempt.h"
#include "lockstep/launch/events.h"
#include "lockstep/launch/log_file.h"
#include "lockstep/launch/log_folder.h"
#include "lockstep/launch/outer_error_file.h"
#include "lockstep/launch/python_exit.h"

namespace lockstep {
namespace {

constexpr int kConfigExitCode = 2;  // base/error.h

using Kind = AttemptResult::Kind;

constexpr double kKillSeconds = 10;

FileDescriptor open_child_events() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  FileDescriptor events(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!events) throw IoError("cannot watch processes: " + errno_text());
  return events;
}

ConsoleStream open_console(int fd, const Plan& plan) {
  const bool is_terminal = isatty(fd) == 1;
  return ConsoleStream(
      fd, is_terminal ? terminal_columns(fd, plan.environment) : 0);
}

bool is_same_terminal(const ConsoleStream& a, const ConsoleStream& b) {
  struct stat first{};
  struct stat second{};
  return a.columns() > 0 && b.columns() > 0 && fstat(a.fd(), &first) == 0 &&
         fstat(b.fd(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

std::string report_of(const Plan& plan, const AttemptResult& result) {
  const Failure& root = result.failures[find_root_cause(result.failures)];
  std::string extra;
  if (is_timeout(root, result.snapshots, plan.timeout_seconds)) {
    extra = timeout_verdict(result.snapshots, root, plan.timeout_seconds);
  }
  extra += early_exits(result.snapshots);
  extra += python_exit_advice(plan.command, root);
  return failure_report(plan.command.title, host_name(), result.failures,
                        extra);
}

class Keeper {
 public:
  Keeper(const Plan& plan, ControlReader& control, const sigset_t& worker_mask)
      : plan_(plan),
        control_(control),
        worker_mask_(worker_mask),
        out_(open_console(STDOUT_FILENO, plan)),
        own_err_(open_console(STDERR_FILENO, plan)),
        err_(is_same_terminal(out_, own_err_) ? out_ : own_err_),
        child_events_(open_child_events()),
        logs_(plan.options.log_dir, plan.run_id) {}

  ~Keeper() { logs_.clean(errors_); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  int run(std::optional<PortReservation> port) {
    for (const std::string& note : plan_.notes) say(note);
    for (int attempt = 0;; ++attempt) {
      if (!port) port = PortReservation::any();
      const AttemptResult result = run_attempt(attempt, port->port());
      for (const ProcessInfo& process : result.survivors) {
        say(fmt::format("process {} ({}) cannot be ended: {}", process.pid,
                        process.command, state_name(process.state)));
      }
      if (may_restart(result, attempt)) {
        announce_restart(result, attempt);
        if (!plan_.master_port) port.reset();
        continue;
      }
      if (plan_.options.prints_events) {
        err_.write(end_events(plan_, attempt, pids_, result));
      }
      return finish(result);
    }
  }

 private:
  void say(const std::string& text) {
    err_.write("lockstep: " + text + "\n");
    err_.flush();
  }

  AttemptResult run_attempt(int attempt, int port) {
    const auto folder = logs_.make_attempt(attempt, plan_.num_processes);
    WorkerGroup group = start_group(plan_,
                                    {.attempt = attempt,
                                     .master_port = port,
                                     .folder = folder,
                                     .signal_mask = worker_mask_,
                                     .losses = &losses_},
                                    out_, err_);
    if (plan_.options.prints_events) tell_start(attempt, group);
    return Attempt(plan_, group,
                   {.control = control_,
                    .out = out_,
                    .err = err_,
                    .child_fd = child_events_.get()})
        .run();
  }

  void tell_start(int attempt, const WorkerGroup& group) {
    pids_.clear();
    for (const Worker& worker : group.workers) pids_.push_back(worker.pid);
    err_.write(start_events(plan_, attempt, pids_));
  }

  bool may_restart(const AttemptResult& result, int attempt) const {
    return result.kind == Kind::kFailure && result.stop_signal == 0 &&
           attempt < plan_.options.max_restarts && !is_input_error(result);
  }

  // The worker has said it; another try or a report would not help.
  bool is_input_error(const AttemptResult& result) const {
    return plan_.runs_own_worker &&
           exit_code_for(result.failures) == kConfigExitCode;
  }

  void announce_restart(const AttemptResult& result, int attempt) {
    const Failure& root = result.failures[find_root_cause(result.failures)];
    say(
        fmt::format("rank {} failed ({}); all {} processes start again "
                    "(restart {} of {})",
                    root.rank, ending_text(root), plan_.num_processes,
                    attempt + 1, plan_.options.max_restarts));
  }

  int finish(const AttemptResult& result) {
    int code = 0;
    if (result.kind == Kind::kFailure) {
      if (!is_input_error(result)) err_.write(report_of(plan_, result));
      code = exit_code_for(result.failures);
      pass_on_root_cause(plan_.environment,
                         result.failures[find_root_cause(result.failures)]);
    } else if (result.kind == Kind::kStopped) {
      code = 128 + result.stop_signal;
      pass_on_signal(plan_.environment, result.stop_signal);
    } else if (result.kind == Kind::kAbandoned) {
      code = 1;
    }
    tell_log_folder();
    tell_lost_lines();
    if (code == 0) errors_ = LogFolder::Errors::kRemove;
    std::array<ConsoleStream*, 2> consoles = {&out_, &err_};
    flush_all(consoles, control_.fd());
    return code;
  }

  // Without --log-dir the user cannot know where the files are.
  void tell_log_folder() {
    const RunOptions& options = plan_.options;
    if (!options.log_dir.empty()) return;
    if (options.redirects.is_empty() && options.tee.is_empty() &&
        options.stdout_filters.empty() && options.stderr_filters.empty()) {
      return;
    }
    say("log files are in " + logs_.path().string());
  }

  void tell_lost_lines() {
    if (const std::string lost = losses_.summary(); !lost.empty()) say(lost);
    if (out_.lost_lines() > 0) {
      say(fmt::format("{} line{} could not be written to stdout: {}",
                      out_.lost_lines(), out_.lost_lines() == 1 ? "" : "s",
                      out_.loss_reason()));
    }
  }

  const Plan& plan_;
  ControlReader& control_;
  sigset_t worker_mask_;
  ConsoleStream out_;
  ConsoleStream own_err_;
  ConsoleStream& err_;  // out_ where both are one terminal, to keep the order
  LogLosses losses_{err_};
  std::vector<pid_t> pids_;  // of the last attempt's workers, for events
  FileDescriptor child_events_;
  LogFolder logs_;
  LogFolder::Errors errors_ = LogFolder::Errors::kKeep;
};

// The keeper has no caller that could catch: its errors end here.
int report_error(const std::exception& error, int code) {
  kill_descendants(kKillSeconds);
  report_to_launcher(error);
  write_all(STDERR_FILENO, fmt::format("lockstep: {}\n", error.what()));
  return code;
}

}  // namespace

int keep_job(const Plan& plan, std::optional<PortReservation> port,
             ControlReader& control, const sigset_t& worker_mask) {
  try {
    return Keeper(plan, control, worker_mask).run(std::move(port));
  } catch (const ProgramError& error) {
    return report_error(error, error.program_exit_code());
  } catch (const std::exception& error) {
    return report_error(error, exit_code(error));
  }
}

}  // namespace lockstep

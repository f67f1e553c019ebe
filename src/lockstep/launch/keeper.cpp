#include "lockstep/launch/keeper.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/error_file.h"
#include "lockstep/base/signals.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/terminal.h"
#include "lockstep/error.h"
#include "lockstep/launch/attempt.h"
#include "lockstep/launch/events.h"
#include "lockstep/launch/job_store.h"
#include "lockstep/launch/log_file.h"
#include "lockstep/launch/log_folder.h"
#include "lockstep/launch/memory_deaths.h"
#include "lockstep/launch/outer_error_file.h"
#include "lockstep/launch/processes.h"
#include "lockstep/launch/python_exit.h"
#include "lockstep/launch/restart_delay.h"

namespace lockstep::launch {
namespace {

using Kind = AttemptResult::Kind;

base::FileDescriptor open_child_events() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  base::FileDescriptor events(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!events) throw IoError("cannot watch processes: " + base::errno_text());
  return events;
}

ConsoleStream open_console(int fd, const Plan& plan) {
  const bool is_terminal = isatty(fd) == 1;
  return ConsoleStream(
      fd, is_terminal ? base::terminal_columns(fd, plan.environment) : 0);
}

bool is_same_terminal(const ConsoleStream& a, const ConsoleStream& b) {
  struct stat first{};
  struct stat second{};
  return a.columns() > 0 && b.columns() > 0 && fstat(a.fd(), &first) == 0 &&
         fstat(b.fd(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

std::string report_of(const Plan& plan, const AttemptResult& result,
                      const MemoryFindings& memory) {
  const Failure& root = result.failures[find_root_cause(result.failures)];
  std::string extra = result.verdict;
  if (extra.empty() &&
      is_timeout(root, result.snapshots, plan.timeout_seconds)) {
    extra = timeout_verdict(result.snapshots, root, plan.timeout_seconds);
  }
  extra += early_exits(result.snapshots);
  extra += other_kills_text(result.failures, memory);
  extra += python_exit_advice(plan.command, root);
  return failure_report(plan.command.title, base::host_name(), result.failures,
                        extra, plan.num_processes);
}

class Keeper {
 public:
  Keeper(const Plan& plan, const LogFolder& logs, ControlReader& control,
         const sigset_t& worker_mask)
      : plan_(plan),
        logs_(logs),
        control_(control),
        worker_mask_(worker_mask),
        out_(open_console(STDOUT_FILENO, plan)),
        own_err_(open_console(STDERR_FILENO, plan)),
        err_(is_same_terminal(out_, own_err_) ? out_ : own_err_),
        child_events_(open_child_events()) {}

  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  int run(std::optional<StoreSocket> port) {
    for (const std::string& note : plan_.notes) say(note);
    if (!port) port = StoreSocket::any(plan_.master_addr);
    RestartDelay delay;
    for (int attempt = 0;; ++attempt) {
      const int64_t begin = base::monotonic_ns();
      const AttemptResult result = run_attempt(attempt, *port);
      for (const ProcessInfo& process : result.survivors) {
        say(fmt::format("process {} ({}) cannot be ended: {}", process.pid,
                        process.command, state_name(process.state)));
      }
      if (may_restart(result, attempt)) {
        const double seconds =
            delay.after(base::seconds_between(begin, base::monotonic_ns()));
        announce_restart(result, attempt, seconds);
        if (const auto end = wait_for_restart(seconds)) return finish(*end);
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

  AttemptResult run_attempt(int attempt, const StoreSocket& port) {
    // Every attempt begins with an empty store.
    JobStore store(port);
    const auto folder = logs_.make_attempt(attempt, plan_.num_processes);
    if (attempt == 0) tell_log_folder();
    MemoryWatch memory;
    WorkerGroup group = start_group(plan_,
                                    {.attempt = attempt,
                                     .master_port = port.port(),
                                     .secret_fd = store.secret_fd(),
                                     .folder = folder,
                                     .signal_mask = worker_mask_,
                                     .losses = &losses_},
                                    out_, err_);
    if (plan_.options.prints_events) tell_start(attempt, group);
    AttemptResult result = Attempt(plan_, group,
                                   {.control = control_,
                                    .out = out_,
                                    .err = err_,
                                    .child_fd = child_events_.get()})
                               .run();
    for (const std::string& notice : store.take_notices()) say(notice);
    memory_ = memory.look();
    explain_kills(result.failures, memory_);
    return result;
  }

  void tell_start(int attempt, const WorkerGroup& group) {
    pids_.clear();
    for (const Worker& worker : group.workers) pids_.push_back(worker.pid);
    err_.write(start_events(plan_, attempt, pids_));
  }

  bool may_restart(const AttemptResult& result, int attempt) const {
    return result.kind == Kind::kFailure && result.stop_signal == 0 &&
           attempt < plan_.options.max_restarts &&
           !is_workers_input_error(result);
  }

  bool is_stop_signal(int signal) const {
    const auto& signals = plan_.options.stop_signals;
    return std::find(signals.begin(), signals.end(), signal) != signals.end();
  }

  // A restart would not help.
  bool is_workers_input_error(const AttemptResult& result) const {
    return plan_.runs_own_worker &&
           exit_code_for(result.failures) == kConfigExitCode;
  }

  // The worker has printed it; a report would not help.
  bool explains_itself(const AttemptResult& result) const {
    const auto& failures = result.failures;
    return is_workers_input_error(result) ||
           is_input_error(failures[find_root_cause(failures)]);
  }

  void announce_restart(const AttemptResult& result, int attempt,
                        double delay) {
    const Failure& root = result.failures[find_root_cause(result.failures)];
    const std::string when = delay > 0 ? " in " + base::duration_text(delay) +
                                             ", after repeated failures"
                                       : "";
    say(
        fmt::format("rank {} failed ({}); all {} processes start again{} "
                    "(restart {} of {})",
                    root.rank, ending_text(root), plan_.num_processes, when,
                    attempt + 1, plan_.options.max_restarts));
    if (!root.meaning.empty()) say(ending_text(root) + ": " + root.meaning);
  }

  // What ended the job during the wait; normally nothing.
  std::optional<AttemptResult> wait_for_restart(double seconds) {
    const int64_t begin = base::monotonic_ns();
    while (true) {
      const double left =
          seconds - base::seconds_between(begin, base::monotonic_ns());
      if (left <= 0) return std::nullopt;
      err_.flush();
      pollfd entry{.fd = control_.fd(), .events = POLLIN, .revents = 0};
      poll(&entry, 1, static_cast<int>(left * 1000) + 1);
      for (const int signal : control_.read()) {
        if (!is_stop_signal(signal)) continue;
        say(base::signal_name(signal) +
            " received, the job does not start again");
        return AttemptResult{.kind = Kind::kStopped, .stop_signal = signal};
      }
      if (control_.is_abandoned()) {
        return AttemptResult{.kind = Kind::kAbandoned};
      }
    }
  }

  int finish(const AttemptResult& result) {
    int code = 0;
    if (result.kind == Kind::kFailure) {
      if (!explains_itself(result))
        err_.write(report_of(plan_, result, memory_));
      code = exit_code_for(result.failures);
      pass_on_root_cause(plan_.environment,
                         result.failures[find_root_cause(result.failures)]);
    } else if (result.kind == Kind::kStopped) {
      code = 128 + result.stop_signal;
      if (result.loss) {
        say(*result.loss);
        code = kUnsavedExitCode;
      }
      pass_on_signal(plan_.environment, result.stop_signal);
    } else if (result.kind == Kind::kAbandoned) {
      code = 1;
      // The guard may be gone, too; otherwise it does this.
      logs_.clean(LogFolder::Errors::kKeep);
    }
    tell_lost_lines();
    std::array<ConsoleStream*, 2> consoles = {&out_, &err_};
    flush_all(consoles, control_.fd());
    return code;
  }

  // Without --log-dir the user cannot know where the files are. At the start,
  // because nothing should follow the last line of a training.
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
  const LogFolder& logs_;
  ControlReader& control_;
  sigset_t worker_mask_;
  ConsoleStream out_;
  ConsoleStream own_err_;
  ConsoleStream& err_;  // out_ where both are one terminal, to keep the order
  LogLosses losses_{err_};
  std::vector<pid_t> pids_;  // of the last attempt's workers, for events
  base::FileDescriptor child_events_;
  MemoryFindings memory_;  // of the last attempt
};

// The keeper has no caller that could catch: its errors end here.
int report_error(const std::exception& error, int code) {
  kill_descendants(kKillSeconds);
  base::report_to_launcher(error);
  base::write_all(STDERR_FILENO, fmt::format("lockstep: {}\n", error.what()));
  return code;
}

}  // namespace

int keep_job(const Plan& plan, const LogFolder& logs,
             std::optional<StoreSocket> port, ControlReader& control,
             const sigset_t& worker_mask) {
  try {
    return Keeper(plan, logs, control, worker_mask).run(std::move(port));
  } catch (const ProgramError& error) {
    return report_error(error, error.program_exit_code());
  } catch (const std::exception& error) {
    return report_error(error, exit_code(error));
  }
}

}  // namespace lockstep::launch
